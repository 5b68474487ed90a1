"""`rightly collect`: a classifier over images and their views."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.class_names import ClassNames, read_class_names
from rightly.cli.console import print_line
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

EXAMPLE = "rightly collect --model timm:resnet50 --images photos --out preds"
MODEL = (
    "timm:NAME, hf:NAME_OR_DIR, torchvision:NAME, onnx:FILE, pt2:FILE or py:package.module:factory."
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
    from rightly.collection import DEFAULT_VIEWS, collect_to_folder

    collect_to_folder(
        model,
        images,
        out,
        views=DEFAULT_VIEWS if views is None else split_names(views),
        shifts="standard" if shifts == "standard" else split_names(shifts),
        labels=labels,
        layout=layout,
        class_names=read_class_names(class_names),
        split=split,
        severity=severity,
        features=features,
        preprocessing=make_preprocessing(size, resize, interpolation, mean, std),
        output=output,
        batch_size=batch_size,
        workers=workers,
        device=device,
        precision=precision,
        dtype=dtype,
        seed=seed,
        unreadable=unreadable,
        allow_random=allow_random,
        engine=make_cluster(engine, ray_address, ray_workers, workers or 1, ray_gpus_per_worker),
        progress=not quiet,
        notify=print_line,
    )
