"""`rightly report`: one HTML page."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from rightly.cli.class_names import ClassNames, read_class_names
from rightly.cli.console import print_line, print_skipped, show_steps
from rightly.cli.inputs import (
    DATA_SET,
    AllowOverlap,
    AnyClassifier,
    LabelFiles,
    On,
    Probabilities,
    Resamples,
    Seed,
    Views,
    read_data_sets,
    read_paths,
    select_given,
)

EXAMPLE = "rightly report cal.npz --on test.npz --out report.html"


def run(
    on: On,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write (.html).")],
    cal: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CAL]",
            help=f"Calibration predictions with labels: {DATA_SET}; optional with --calibrator.",
        ),
    ] = None,
    calibrator: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A saved calibrator (.safetensors) to report on.",
            show_default="--method, fitted on CAL",
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="The method the report is about.")] = "rightly",
    methods: Annotated[
        str | None,
        typer.Option(
            help="all, or methods and groups to compare it with, joined by commas.",
            show_default="uncalibrated, temperature_scaling, ensemble_temperature_scaling, spline",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="all, or names joined by commas.", show_default="ece,brier,ks,auroc,aurc"
        ),
    ] = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the images that were collected are."),
    ] = None,
    layout: Annotated[str, typer.Option(help="Of --images, as for collect.")] = "auto",
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Groups of rows: columns group and image or row (and test).",
        ),
    ] = None,
    class_names: ClassNames = None,
    title: Annotated[str, typer.Option(help="What the model is called.")] = "this classifier",
    resamples: Resamples = None,
    seed: Seed = 0,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Write one HTML page: can this confidence be trusted?"""
    options = {
        "on": on,
        "calibrator": calibrator,
        "method": method if calibrator is None else None,
        "methods": methods,
        "metrics": metrics,
        "views": views,
        "images": images,
        "layout": layout if images is not None else None,
        "groups": groups,
        "class-names": class_names,
        "title": title,
        "resamples": resamples,
        "seed": seed,
        "any-classifier": any_classifier,
        "allow-overlap": allow_overlap,
        "probabilities": probabilities,
        "labels": labels,
        "out": out,
    }
    if cal is None and calibrator is None:
        raise ValueError("report needs CAL, to fit --method on, or --calibrator: name one of them")
    from rightly.datasets import open_images
    from rightly.reporting import report
    from rightly.reporting.formatting import describe_accuracy

    paths = read_paths(on)
    files = [*paths.values(), *([] if cal is None else [cal])]
    sets = read_data_sets(files, labels, probabilities, views)
    with show_steps() as progress:
        made = report(
            method if calibrator is None else calibrator,
            dict(zip(paths, sets, strict=False)),
            out,
            cal=None if cal is None else sets[-1],
            images=None if images is None else open_images(images, layout=layout),
            groups=groups,
            class_names=read_class_names(class_names),
            title=title,
            resamples=resamples,
            seed=seed,
            progress=progress,
            any_classifier=any_classifier,
            allow_overlap=allow_overlap,
            command=_spell(cal, options),
            **select_given(methods=methods, metrics=metrics),
        )
    if made.comparison is not None:
        print_skipped(made.comparison.skipped)
    for line in describe_accuracy(made.evaluation.accuracy):
        print_line(line)
    print_line(f"the report is in {out}")


def _spell(cal: Path | None, options: dict[str, Any]) -> str:
    """The command that makes this report, every option spelled out."""
    words = ["rightly", "report", *([] if cal is None else [str(cal)])]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(f"--{name}")
            elif one is not None and one is not False:
                words += [f"--{name}", str(one)]
    return shlex.join(words)
