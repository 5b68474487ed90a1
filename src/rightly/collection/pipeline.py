"""From a classifier and images to stored predictions: the only slow step, done once.

    images --decode, resize--> bytes --[0, 1]--> shifts --> views --normalise--> classifier
           threads, ahead of the model             each of them once for every image

Images are taken in shards of a fixed size. A shard is stored when it is complete, so
that a run can be killed at any moment and resumes where it was.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from rightly.checks import abbreviate, check_names
from rightly.classifiers import Classifier, Preprocessing, open_model
from rightly.collection.decoding import CollectionLog
from rightly.collection.distributed import CollectJob, collect_with
from rightly.collection.forward import combine_blocks, compute_batches, compute_blocks
from rightly.collection.plan import DEFAULT_VIEWS, Plan, describe_model
from rightly.collection.ray_cluster import Cluster
from rightly.datasets import ImageDataset, open_images
from rightly.predictions import Predictions, Source, load
from rightly.predictions.parquet import describe_classifier, read_accuracy
from rightly.predictions.rows import warn_at_chance
from rightly.predictions.store import Block, Store
from rightly.progress import Progress, ignore, track
from rightly.tensor_shapes import Labels
from rightly.transforms.shifts import STANDARD_SHIFTS

NO_LABELS = (
    "there are no labels, so no calibrator can be fitted or measured on these predictions: give "
    "labels, a CSV file with file name and label, or a folder per class"
)
# Arguments of `collect` by what takes them.
COMPUTED = ("features", "precision", "dtype", "seed", "unreadable", "allow_random")
OPENED = ("model", "device", "preprocessing", "features", "output")
SHOWN = ("layout", "labels", "class_names", "split", "severity")
RUN = ("batch_size", "workers", "engine", "progress", "notify")
SAVE_EVERY_S = 5.0  # an unfinished shard
SAVING_SHARE = 0.05  # of the time may go into that


def collect(
    model: Any,
    samples: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    views: Sequence[str] = DEFAULT_VIEWS,
    shifts: str | Sequence[str] = (),
    labels: str | os.PathLike[str] | Sequence[int] | None = None,
    layout: str = "auto",
    class_names: Sequence[str] | None = None,
    split: str | None = None,
    severity: int | None = None,
    features: bool = False,
    preprocessing: Preprocessing | None = None,
    output: str | int | None = None,
    batch_size: int = 256,
    workers: int | None = None,
    device: str | torch.device = "auto",
    precision: str = "float32",
    dtype: str = "float32",
    seed: int = 0,
    unreadable: str = "stop",
    allow_random: bool = False,
    engine: Cluster | None = None,
    progress: Progress | bool = False,
    notify: Callable[[str], object] | None = None,
) -> tuple[Predictions, Labels | None]:
    """Run a classifier over samples and their views, once.

    With `out`, rows are stored as a Parquet data set as they come, and a run that was stopped goes
    on when it is repeated; without, they are only returned.

    Args:
        model: A spec such as "timm:resnet50", a module, or a function from images to logits.
        samples: A folder, a torch Dataset, a Hugging Face one, or what `open_images` returned.
        out: Folder to write.
        views: Names of views; () for none.
        shifts: "name" at severity 3, or "name:severity"; "standard" for the standard ones.
        labels, layout, class_names, split, severity: As for `open_images`.
        features: Keep penultimate features.
        preprocessing, output, device: As for `open_model`.
        batch_size: Images per forward pass.
        workers: Decoding threads; None for as many as there are CPUs.
        precision: To run in: "float32", "bfloat16" or "float16".
        dtype: To store: "float32" or "float16".
        seed: Of random shifts; random views are the same for an image at all times.
        unreadable: "stop" or "skip" at an image that cannot be decoded.
        allow_random: Accept a model that gives an image other logits each time.
        engine: A Ray cluster to run on; None for this machine.
        progress: True for a bar, or a function called with (step, done, total).
        notify: Called with a line about what is run, such as the size of images, or came of it.
    """
    options = locals()
    if out is None:
        return _compute(_Run.prepare(options))
    _write(_Run.prepare(options), Path(out))
    return load(out)


def collect_to_folder(
    model: Any, samples: Any, out: str | os.PathLike[str], **options: Any
) -> None:
    """Collect as `collect` does, with its options, but read nothing back: of any size."""
    known = {name: one.default for name, one in signature(collect).parameters.items()}
    check_names("options", options, known, "see rightly.collect")
    given = {**known, **options, "model": model, "samples": samples, "out": out}
    _write(_Run.prepare(given), Path(out))


@dataclass(frozen=True)
class _Run:
    """What is collected, opened, and how."""

    plan: Plan
    model: Mapping[str, Any]  # arguments of `open_model`
    source: Mapping[str, Any]  # arguments of `open_images`
    classifier: Classifier
    images: ImageDataset
    batch_size: int
    workers: int | None
    engine: Cluster | None
    progress: Progress | bool
    notify: Callable[[str], object] | None
    log: CollectionLog = field(default_factory=CollectionLog)

    @classmethod
    def prepare(cls, options: Mapping[str, Any]) -> "_Run":
        """Open model and samples by the arguments of `collect`."""
        shifts = STANDARD_SHIFTS if options["shifts"] == "standard" else options["shifts"]
        plan = Plan(tuple(options["views"]), tuple(shifts), *(options[name] for name in COMPUTED))
        model = {name: options[name] for name in OPENED}
        source = {"source": options["samples"], **{name: options[name] for name in SHOWN}}
        engine = options["engine"]
        if engine is not None:
            _check_engine(engine, options)
        # Workers of Ray have the device: here the model is only looked at.
        here = model if engine is None or model["device"] == "auto" else {**model, "device": "cpu"}
        classifier, images = open_model(**here), open_images(**source)
        how = {name: options[name] for name in RUN}
        run = cls(plan, model, source, classifier, images, **how)
        run.warn(images.notes)
        if images.labels is None:
            run.say(NO_LABELS)
        run.say(f"preprocessing: {classifier.preprocessing.describe()}")
        return run

    def say(self, line: str) -> None:
        """Tell what is run, and what came of it, if anybody listens."""
        if self.notify is not None:
            self.notify(line)

    def warn(self, lines: Iterable[str]) -> None:
        """Tell what the user should know, as a warning if nobody listens."""
        for line in lines:
            if self.notify is not None:
                self.notify(line)
            else:
                warnings.warn(line, UserWarning, stacklevel=5)

    def warn_of_images(self, skipped: Sequence[tuple[str, str]]) -> None:
        """Tell which images were converted or left out."""
        self.warn(
            f"{count} images of mode {mode} were converted to RGB"
            for mode, count in self.log.converted.items()
        )
        if self.notify is not None:
            self.warn(f"skipped {name}: {reason}" for name, reason in skipped)
        elif skipped:
            names = abbreviate([name for name, _ in skipped])
            count = f"{len(skipped)} of {len(self.images)} images"
            self.warn([f"{count} cannot be decoded and are left out: {names}"])


def _compute(run: _Run) -> tuple[Predictions, Labels | None]:
    """All rows, in memory."""
    classifier, images, plan = run.classifier, run.images, run.plan
    run.say(plan.describe_passes(len(images)))
    shards = plan.shards(len(images))
    with track(run.progress, keep=True) as step:
        made = compute_blocks(
            classifier, images, plan, shards, run.batch_size, run.workers, step, run.log
        )
        whole = combine_blocks([block for _, block in made])
    run.warn_of_images(whole.skipped)
    class_names = images.class_names or classifier.class_names
    return _to_predictions(whole, plan, class_names, describe_model(classifier, images))


def _write(run: _Run, out: Path) -> None:
    """The rows that a folder still lacks."""
    images, plan, say, start = run.images, run.plan, run.say, monotonic()
    with Store.claim(out, plan.settings(run.classifier, images)) as store:
        left = sum(len(plan.rows(k, len(images))) for k in store.missing())
        if left:
            say(plan.describe_passes(left))
        with track(run.progress, keep=left > 0) as step:
            if run.engine is None:
                how = (run.batch_size, run.workers, step, run.log)
                collect_into(store, run.classifier, images, plan, *how)
            else:
                threads = run.engine.cpus
                job = CollectJob(store, plan, run.model, run.source, run.batch_size, threads)
                collect_with(run.engine, job, step, run.log)
        skipped = store.skipped()
    run.warn_of_images(skipped)
    for shift, share in read_accuracy(out).items():
        say(f"accuracy{f' under {shift}' if shift else ''}: {share:.1%}")
    took = f"took {monotonic() - start:.1f} s" if left else "was complete"
    say(f"{len(images) - len(skipped)} of {len(images)} images are in {out} ({took})")


def _check_engine(engine: Cluster, options: Mapping[str, Any]) -> None:
    """Refuse what workers of Ray cannot be given."""
    if options["out"] is None:
        raise ValueError("engine needs out, a folder that all workers write to")
    if not isinstance(options["model"], str):
        raise TypeError("engine needs a model by its spec, such as timm:resnet50")
    if not isinstance(options["samples"], str | os.PathLike):
        raise TypeError("engine needs samples by their folder, which all workers see")
    device = str(options["device"])
    if device.startswith("cuda") and not engine.gpus:
        raise ValueError(f"device {device} needs GPUs for the workers of Ray: set ray_gpus to 1")


def collect_into(
    store: Store,
    classifier: Classifier,
    images: ImageDataset,
    plan: Plan,
    batch_size: int = 256,
    workers: int | None = None,
    progress: Progress = ignore,
    log: CollectionLog | None = None,
) -> None:
    """Writes the shards that a store still lacks, and every few seconds what it has of the next.

    So a run that is stopped, in whatever way, loses the work of seconds.
    """
    rows_of, gathered = _find_missing(store, images, plan)
    shown = len(images) - sum(len(rows) for rows in rows_of.values())
    progress("collecting", shown, len(images))
    empty: dict[int, Block] = {}
    batches = compute_batches(classifier, images, plan, rows_of, batch_size, workers, log)
    unsaved: tuple[int, int] | None = None  # shard, and how many of its images are known
    saved, cost = monotonic(), 0.0

    def save(k: int, done: int) -> None:
        store.write_partial(k, combine_blocks(gathered[k]), done)

    try:
        with closing(batches):  # when a write fails, the classifier is restored at once
            for k, rows, block in batches:
                gathered.setdefault(k, []).append(block)
                unsaved = k, rows.stop - plan.rows(k, len(images)).start
                shown += len(rows)
                progress("collecting", shown, len(images))
                if rows.stop == plan.rows(k, len(images)).stop:
                    whole = combine_blocks(gathered[k])
                    if len(whole.image):
                        store.write(k, whole)
                    else:
                        empty[k] = whole
                    del gathered[k]
                    unsaved, saved = None, monotonic()
                elif monotonic() - saved > max(SAVE_EVERY_S, cost / SAVING_SHARE):
                    start = monotonic()
                    save(*unsaved)
                    unsaved, saved = None, monotonic()
                    cost = saved - start
    except (ValueError, TypeError):
        raise  # to be mended by other settings, for which nothing can be kept
    except BaseException:
        if unsaved is not None and unsaved[0] in gathered:
            with suppress(OSError):  # a full disk was reported already
                save(*unsaved)
        raise
    for k, block in empty.items():  # last, because they take their columns from the others
        store.write(k, block)


def _find_missing(
    store: Store, images: ImageDataset, plan: Plan
) -> tuple[dict[int, range], dict[int, list[Block]]]:
    """The images of each shard that are still to be shown, and what is known of the others."""
    rows_of: dict[int, range] = {}
    gathered: dict[int, list[Block]] = {}
    for k in store.missing():
        rows = plan.rows(k, len(images))
        partial = store.read_partial(k)
        if partial is not None and partial[1] == len(rows):  # stopped before it was written
            store.write(k, partial[0])
            continue
        if partial is not None:
            gathered[k] = [partial[0]]
        rows_of[k] = rows[partial[1] if partial else 0 :]
    return rows_of, gathered


def _to_predictions(
    whole: Block, plan: Plan, class_names: Sequence[str] | None, model: Mapping[str, Any]
) -> tuple[Predictions, Labels | None]:
    if not len(whole.image):
        name, reason = whole.skipped[0]
        raise ValueError(f"no image could be decoded; the first is {name}: {reason}")
    predictions = Predictions(
        whole.logits,
        whole.view_logits,
        whole.features,
        plan.views or None,
        class_names,
        whole.shift if plan.shifts else None,
        plan.shifts,
        whole.image,
        whole.image_hash,
        model["model_fingerprint"],
        Source(classifier=describe_classifier(model)),
    )
    if whole.labels is None:
        return predictions, None
    labels, as_is = torch.from_numpy(whole.labels), predictions.unshifted()
    warn_at_chance("the collection", predictions[as_is], labels[as_is])
    return predictions, labels
