"""From a classifier and images to stored predictions: the only slow step, done once.

    images --decode, resize--> bytes --[0, 1]--> shifts --> views --normalise--> classifier
           threads, ahead of the model             each of them once for every image

Images are taken in shards of a fixed size. A shard is stored when it is complete, so
that a run can be killed at any moment and resumes where it was.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from rightly.checks import abbreviate
from rightly.classifiers import Classifier, Preprocessing, open_model
from rightly.collection.decoding import CollectionLog
from rightly.collection.forward import combine_blocks, compute_batches, compute_blocks
from rightly.collection.plan import DEFAULT_VIEWS, Plan, describe_model
from rightly.datasets import ImageDataset, open_images
from rightly.predictions import Predictions, Source, load
from rightly.predictions.parquet import describe_classifier
from rightly.predictions.rows import warn_at_chance
from rightly.predictions.store import Block, Store
from rightly.progress import Progress, ignore, track
from rightly.tensor_shapes import Labels

SAVE_EVERY_S = 5.0  # an unfinished shard
SAVING_SHARE = 0.05  # of the time may go into that


def collect(
    model: Any,
    dataset: Any,
    views: Sequence[str] = DEFAULT_VIEWS,
    shifts: Sequence[str] = (),
    batch_size: int = 256,
    device: str | torch.device = "auto",
    out: str | os.PathLike[str] | None = None,
    *,
    features: bool = False,
    preprocessing: Preprocessing | None = None,
    output: str | int | None = None,
    images: Mapping[str, Any] | None = None,
    precision: str = "float32",
    dtype: str = "float32",
    seed: int = 0,
    unreadable: str = "stop",
    allow_random: bool = False,
    workers: int | None = None,
    progress: Progress | bool = False,
) -> tuple[Predictions, Labels | None]:
    """Runs a classifier once over a data set and over the views of every image.

    `model` is a spec such as "timm:resnet50", a module or a function; `dataset` a folder, a torch
    Dataset or a Hugging Face one (`images` holds further arguments of `open_images`). With `out`
    the rows are stored as a Parquet data set as they come; without, they are only returned.
    A model in training mode is refused, unless `allow_random`. `progress` is True for a bar, or
    called with what is being done, how many images are done, and of how many.
    """
    settings = (features, precision, dtype, seed, unreadable, allow_random)
    plan = Plan(tuple(views), tuple(shifts), *settings)
    classifier = open_model(
        model, device=device, preprocessing=preprocessing, features=features, output=output
    )
    if not isinstance(dataset, ImageDataset):
        dataset = open_images(dataset, **(images or {}))
    log = CollectionLog()
    if out is not None:
        wanted = plan.settings(classifier, dataset)
        with Store.claim(Path(out), wanted) as store, track(progress) as step:
            collect_into(store, classifier, dataset, plan, batch_size, workers, step, log)
            _warn(dataset, log, store.skipped())
        return _warn_unrelated(*load(out))
    shards = plan.shards(len(dataset))
    with track(progress) as step:
        made = compute_blocks(classifier, dataset, plan, shards, batch_size, workers, step, log)
        whole = combine_blocks([block for _, block in made])
    _warn(dataset, log, whole.skipped)
    class_names = dataset.class_names or classifier.class_names
    source = describe_model(classifier, dataset)
    return _warn_unrelated(*_to_predictions(whole, plan, class_names, source))


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


def _warn(images: ImageDataset, log: CollectionLog, skipped: Sequence[tuple[str, str]]) -> None:
    messages = list(images.notes)
    for mode, count in log.converted.items():
        messages.append(f"{count} images of mode {mode} were converted to RGB")
    if skipped:
        names = abbreviate([name for name, _ in skipped])
        messages.append(
            f"{len(skipped)} of {len(images)} images cannot be decoded and are left out: {names}"
        )
    for text in messages:
        warnings.warn(text, UserWarning, stacklevel=3)


def _warn_unrelated(
    predictions: Predictions, labels: Labels | None
) -> tuple[Predictions, Labels | None]:
    if labels is not None:
        as_is = predictions.unshifted()
        warn_at_chance("the collection", predictions[as_is], labels[as_is])
    return predictions, labels


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
    return predictions, None if whole.labels is None else torch.from_numpy(whole.labels)
