"""The command that runs a classifier: collect."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rightly.classifiers import MODEL_SPECS, Preprocessing, open_model
from rightly.cli import engines
from rightly.cli.calibrating import names_in
from rightly.cli.consoles import ERR, OUT
from rightly.collection import DEFAULT_VIEWS, CollectionLog, Plan, collect_into
from rightly.collection.distributed import CollectJob, collect_with
from rightly.collection.ray_cluster import Cluster
from rightly.datasets import LAYOUTS, ImageDataset, open_images
from rightly.predictions.store import Store
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
from rightly.transforms.views import VIEWS


def add_commands(commands: Any) -> None:
    """The commands of this module and their arguments."""
    add = commands.add_parser("collect", help="run a classifier over images and their views")
    add.add_argument("--model", required=True, metavar="SPEC", help=MODEL_SPECS)
    add.add_argument("--images", required=True, metavar="FOLDER")
    add.add_argument("--out", required=True, metavar="FOLDER", help="Parquet data set to write")
    add.add_argument("--layout", default="auto", help=f"auto, {', '.join(LAYOUTS)}")
    add.add_argument("--labels", metavar="CSV", help="file name and label of each image")
    add.add_argument("--split", help="of a data set that has several")
    add.add_argument("--severity", type=int, help="of CIFAR-10-C")
    add.add_argument("--views", default=",".join(DEFAULT_VIEWS), help=f"of {', '.join(VIEWS)}")
    add.add_argument(
        "--shifts",
        default="",
        help=f"NAME or NAME:1..5, of {', '.join(SHIFTS)}; or rehearsal, for {', '.join(STANDARD_SHIFTS)}",
    )
    add.add_argument("--features", action="store_true", help="keep penultimate features")
    add.add_argument("-b", "--batch-size", type=int, default=256)
    add.add_argument(
        "-j", "--workers", type=int, help="threads that decode images; CPUs of each worker of Ray"
    )
    add.add_argument("--device", default="auto")
    add.add_argument("--precision", default="float32", help="float32, bfloat16 or float16")
    add.add_argument("--dtype", default="float32", help="stored as float32 or float16")
    add.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of random shifts; random views are always the same for an image",
    )
    add.add_argument("--unreadable", default="stop", help="stop or skip at a damaged picture")
    add_preprocessing(add)
    add.add_argument("--output", help="which of several outputs holds the logits")
    add.add_argument("--quiet", action="store_true", help="no progress bar")
    engines.add_arguments(add)
    add.add_argument("--ray-gpus-per-worker", type=float, default=0.0, help="0 runs on CPUs")
    add.set_defaults(run=_collect)


def _collect(chosen: argparse.Namespace) -> None:
    plan = Plan(
        tuple(names_in(chosen.views)),
        STANDARD_SHIFTS if chosen.shifts == "rehearsal" else tuple(names_in(chosen.shifts)),
        chosen.features,
        chosen.precision,
        chosen.dtype,
        chosen.seed,
        chosen.unreadable,
    )
    cluster = engines.cluster_of(chosen, chosen.workers or 1, chosen.ray_gpus_per_worker)
    model, source = _model(chosen), _images(chosen)
    work = {"model": model, "images": source, "batch_size": chosen.batch_size}
    if cluster is not None and chosen.device != "auto":
        _check_device(chosen.device, cluster)
        model = {**model, "device": "cpu"}  # workers have the device: here it is only looked at
    classifier, images = open_model(**model), open_images(**source)
    store = Store.begin(Path(chosen.out), plan.settings(classifier, images))
    for note in images.notes:
        ERR.print(note, soft_wrap=True)
    log, start = CollectionLog(), monotonic()
    left = len(store.missing())
    with _progress(len(images), chosen.quiet) as advance:
        if cluster is None:
            collect_into(
                store, classifier, images, plan, chosen.batch_size, chosen.workers, advance, log
            )
        else:
            collect_with(
                cluster, CollectJob(store, plan, **work, threads=cluster.cpus), advance, log
            )
    _tell(store, images, log, monotonic() - start if left else None)


def _model(chosen: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say to `open_model`."""
    return {
        "model": chosen.model,
        "device": chosen.device,
        "preprocessing": preprocessing_of(chosen),
        "features": chosen.features,
        "output": chosen.output,
    }


def _images(chosen: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say to `open_images`."""
    return {
        "source": chosen.images,
        "layout": chosen.layout,
        "labels": chosen.labels,
        "split": chosen.split,
        "severity": chosen.severity,
    }


def _check_device(device: str, cluster: Cluster) -> None:
    if device.startswith("cuda") and not cluster.gpus:
        raise ValueError(
            f"--device {device} needs GPUs for the workers of Ray: add --ray-gpus-per-worker 1"
        )


def add_preprocessing(add: argparse.ArgumentParser) -> None:
    """Arguments that say how a model wants its images."""
    add.add_argument("--size", type=int, help="side of the square the model takes")
    add.add_argument("--resize", type=int, help="shorter side before the centre is cut out")
    add.add_argument("--interpolation", default="bilinear")
    add.add_argument("--mean", type=three_numbers, help="three numbers for images in [0, 1]")
    add.add_argument("--std", type=three_numbers, help="three numbers for images in [0, 1]")


def preprocessing_of(chosen: argparse.Namespace) -> Preprocessing | None:
    """What the arguments say about preprocessing; the model's own config where they say nothing."""
    given = {
        "size": (chosen.size, chosen.size) if chosen.size else None,
        "resize": chosen.resize,
        "mean": chosen.mean,
        "std": chosen.std,
    }
    if not any(given.values()):
        return None
    known = {name: value for name, value in given.items() if value is not None}
    return Preprocessing(**known, interpolation=chosen.interpolation)


def three_numbers(text: str) -> tuple[float, float, float]:
    red, green, blue = (float(part) for part in text.split(","))
    return red, green, blue


class _Rate(ProgressColumn):
    """Images a second since this run began."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} images/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Any]:
    if quiet:
        yield lambda count: None
        return
    with Progress(
        TextColumn("collecting"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=ERR,
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def _tell(store: Store, images: ImageDataset, log: CollectionLog, seconds: float | None) -> None:
    for mode, count in log.converted.items():
        ERR.print(f"{count} pictures of mode {mode} were converted to RGB")
    skipped = store.skipped()
    for name, reason in skipped:
        ERR.print(f"skipped {name}: {reason}", soft_wrap=True)
    took = "was complete" if seconds is None else f"took {seconds:.1f} s"
    OUT.print(
        f"{len(images) - len(skipped)} of {len(images)} images are in {store.path} ({took})",
        soft_wrap=True,
    )
