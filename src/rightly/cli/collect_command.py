"""`rightly collect`: a classifier over images and their views."""

from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.class_names import ClassNames, read_class_names
from rightly.cli.console import ERR, print_line
from rightly.cli.engines import Engine, RayAddress, RayGpus, RayWorkers, make_cluster
from rightly.cli.inputs import (
    Interpolation,
    Mean,
    Resize,
    Size,
    Std,
    make_preprocessing,
    split_names,
)
from rightly.progress import track

if TYPE_CHECKING:
    from rightly.collection import CollectionLog, Plan
    from rightly.collection.ray_cluster import Cluster
    from rightly.datasets import ImageDataset
    from rightly.predictions.store import Store

EXAMPLE = "rightly collect --model timm:resnet50 --images photos --out preds"
MODEL = (
    "timm:NAME, hf:NAME_OR_DIR, torchvision:NAME, onnx:FILE, pt2:FILE or py:package.module:factory."
)
NO_LABELS = (
    "there are no labels, so no calibrator can be fitted or measured on these predictions: give "
    "--labels CSV with file name and label, or a folder per class"
)


def _print_names(is_asked: bool) -> bool:
    if not is_asked:
        return is_asked
    from rightly.datasets import LAYOUTS
    from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
    from rightly.transforms.views import VIEWS

    print_line(f"views: {', '.join(VIEWS)}")
    print_line(f"shifts: {', '.join(SHIFTS)}")
    print_line(f"standard shifts: {', '.join(STANDARD_SHIFTS)}")
    print_line(f"layouts: {', '.join(LAYOUTS)}")
    raise typer.Exit()


def run(
    model: Annotated[str, typer.Option(metavar="SPEC", help=MODEL)],
    images: Annotated[str, typer.Option(metavar="FOLDER", help="Where the images are.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Parquet data set to write.")],
    names: Annotated[
        bool,
        typer.Option(
            "--list",
            callback=_print_names,
            is_eager=True,
            help="Print the names of views, shifts and layouts, and stop.",
        ),
    ] = False,
    layout: Annotated[str, typer.Option(help="Of the folder; see --list.")] = "auto",
    labels: Annotated[
        str | None, typer.Option(metavar="CSV", help="File name and label of each image.")
    ] = None,
    class_names: ClassNames = None,
    split: Annotated[str | None, typer.Option(help="Of a data set that has several.")] = None,
    severity: Annotated[int | None, typer.Option(help="Of CIFAR-10-C.")] = None,
    views: Annotated[
        str | None,
        typer.Option(
            help="Names joined by commas; see --list.",
            show_default="hflip,translation,zoom",
        ),
    ] = None,
    shifts: Annotated[
        str | None,
        typer.Option(
            help="NAME or NAME:1..5 joined by commas, or standard; see --list.",
            show_default="none",
        ),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Keep penultimate features.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", "-b", help="Images run at once.")
    ] = 256,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-j",
            help="Threads that decode images; CPUs of each worker of Ray.",
            show_default="as many as there are CPUs; 1 for Ray",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="To run in: float32, bfloat16 or float16.")
    ] = "float32",
    dtype: Annotated[str, typer.Option(help="To store: float32 or float16.")] = "float32",
    seed: Annotated[
        int,
        typer.Option(help="Of random shifts; random views are always the same for an image."),
    ] = 0,
    unreadable: Annotated[
        str, typer.Option(help="stop or skip at an image that cannot be decoded.")
    ] = "stop",
    allow_random: Annotated[
        bool, typer.Option("--allow-random", help="Take a model that seems to be in training mode.")
    ] = False,
    size: Size = None,
    resize: Resize = None,
    interpolation: Interpolation = "bilinear",
    mean: Mean = None,
    std: Std = None,
    output: Annotated[
        str | None, typer.Option(help="Which of several outputs holds the logits.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    engine: Engine = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
    ray_gpus_per_worker: RayGpus = 0.0,
) -> None:
    """Run a classifier over images and their views."""
    from rightly.collection import DEFAULT_VIEWS, Plan
    from rightly.transforms.shifts import STANDARD_SHIFTS

    plan = Plan(
        DEFAULT_VIEWS if views is None else tuple(split_names(views)),
        STANDARD_SHIFTS if shifts == "standard" else tuple(split_names(shifts)),
        features,
        precision,
        dtype,
        seed,
        unreadable,
        allow_random,
    )
    cluster = make_cluster(engine, ray_address, ray_workers, workers or 1, ray_gpus_per_worker)
    classifier: dict[str, Any] = {
        "model": model,
        "device": device,
        "preprocessing": make_preprocessing(size, resize, interpolation, mean, std),
        "features": features,
        "output": output,
    }
    source: dict[str, Any] = {
        "source": images,
        "layout": layout,
        "labels": labels,
        "class_names": read_class_names(class_names),
        "split": split,
        "severity": severity,
    }
    _collect(out, plan, classifier, source, batch_size, workers, cluster, quiet)


def _collect(
    out: Path,
    plan: "Plan",
    model: dict[str, Any],
    source: dict[str, Any],
    batch_size: int,
    workers: int | None,
    cluster: "Cluster | None",
    quiet: bool,
) -> None:
    from rightly.classifiers import open_model
    from rightly.collection import CollectionLog, collect_into
    from rightly.collection.distributed import CollectJob, collect_with
    from rightly.datasets import open_images
    from rightly.predictions.store import Store

    work: dict[str, Any] = {"model": model, "images": source, "batch_size": batch_size}
    if cluster is not None and model["device"] != "auto":
        _check_device(model["device"], cluster)
        model = {**model, "device": "cpu"}  # workers have the device: here it is only looked at
    classifier, images = open_model(**model), open_images(**source)
    for note in images.notes:
        print_line(note, ERR)
    if images.labels is None:
        print_line(NO_LABELS, ERR, style="yellow")
    log, start = CollectionLog(), monotonic()
    with Store.claim(out, plan.settings(classifier, images)) as store:
        is_complete = not store.missing()
        before = len(images) - sum(len(plan.rows(k, len(images))) for k in store.missing())
        rate = _make_rate(before)
        if not (quiet or is_complete):
            print_line(plan.describe_passes(len(images) - before), ERR)
        with track(not quiet, rate, console=ERR, keep=True) as progress:
            if cluster is None:
                collect_into(store, classifier, images, plan, batch_size, workers, progress, log)
            else:
                job = CollectJob(store, plan, **work, threads=cluster.cpus)
                collect_with(cluster, job, progress, log)
        _describe(store, images, log, None if is_complete else monotonic() - start)


def _check_device(device: str, cluster: "Cluster") -> None:
    if device.startswith("cuda") and not cluster.gpus:
        raise ValueError(
            f"--device {device} needs GPUs for the workers of Ray: add --ray-gpus-per-worker 1"
        )


def _make_rate(before: int) -> Any:
    """Images a second in this run and the time left, as a column of the progress bar.

    `before` images were collected by an earlier run: they took no time in this one.
    """
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            done, seconds = task.completed - before, task.elapsed
            if done <= 0 or not seconds:
                return Text("")
            left = timedelta(seconds=round((task.remaining or 0) * seconds / done))
            rate = done / seconds
            shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
            return Text(f"{shown} images/s, {left} left", style="progress.data.speed")

    return Rate()


def _describe(
    store: "Store", images: "ImageDataset", log: "CollectionLog", seconds: float | None
) -> None:
    from rightly.predictions.parquet import read_accuracy

    for mode, count in log.converted.items():
        ERR.print(f"{count} images of mode {mode} were converted to RGB")
    skipped = store.skipped()
    for name, reason in skipped:
        print_line(f"skipped {name}: {reason}", ERR)
    for shift, share in read_accuracy(store.path).items():
        print_line(f"accuracy{f' under {shift}' if shift else ''}: {share:.1%}")
    took = "was complete" if seconds is None else f"took {seconds:.1f} s"
    print_line(f"{len(images) - len(skipped)} of {len(images)} images are in {store.path} ({took})")
