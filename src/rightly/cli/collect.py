"""`rightly collect`: a classifier over images and their views."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line
from rightly.cli.options import (
    ClassNames,
    Engine,
    Import,
    Interpolation,
    Layout,
    Mean,
    Model,
    Output,
    Quiet,
    RayAddress,
    RayGpus,
    RayWorkers,
    Resize,
    Seed,
    Size,
    Std,
    make_cluster,
    make_preprocessing,
    option,
    read_class_names,
    split_names,
)

EXAMPLE = "rightly collect timm:resnet50 photos --out predictions"
FUNCTIONS = ("rightly.collection:collect",)


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
    model: Model,
    images: Annotated[str, typer.Argument(metavar="IMAGES", help="Folder of the images.")],
    out: Annotated[Path, option("out", metavar="FOLDER")],
    modules: Import = None,
    names: Annotated[bool, option("list", callback=_print_names, is_eager=True)] = False,
    layout: Layout = "auto",
    labels: Annotated[
        str | None,
        typer.Option(metavar="CSV", help="File name and label of each image.", show_default="none"),
    ] = None,
    class_names: ClassNames = None,
    split: Annotated[str | None, option("split")] = None,
    severity: Annotated[int | None, option("severity")] = None,
    views: Annotated[
        str | None,
        option("views", metavar="NAME,NAME", show_default="hflip,translation,zoom (see --list)"),
    ] = None,
    shifts: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:1..5],NAME",
            help="Shifts to collect too, joined by commas, or standard (--list).",
            show_default="none",
        ),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Penultimate features, stored too.")
    ] = False,
    batch_size: Annotated[int, option("batch-size", "--batch-size", "-b", metavar="N")] = 256,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-j",
            metavar="N",
            help="Decoding threads; with Ray, CPUs per worker.",
            show_default="as many as there are CPUs; 1 for Ray",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda, cuda:N or mps.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Precision of the model: float32, bfloat16 or float16.")
    ] = "float32",
    dtype: Annotated[str, typer.Option(help="Stored precision: float32 or float16.")] = "float32",
    seed: Seed = 0,
    unreadable: Annotated[
        str, typer.Option(help="Reaction to an image that cannot be decoded: stop or skip.")
    ] = "stop",
    allow_random: Annotated[
        bool, typer.Option("--allow-random", help="Accept a model in training mode.")
    ] = False,
    size: Size = None,
    resize: Resize = None,
    interpolation: Interpolation = "bilinear",
    mean: Mean = None,
    std: Std = None,
    output: Output = None,
    quiet: Quiet = False,
    engine: Engine = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
    ray_gpus: RayGpus = 0.0,
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
        engine=make_cluster(engine, ray_address, ray_workers, workers or 1, ray_gpus),
        progress=not quiet,
        notify=print_line,
    )
