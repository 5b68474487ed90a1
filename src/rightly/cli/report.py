"""`rightly report`: one HTML page."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from rightly.cli.console import print_line, print_skipped
from rightly.cli.options import (
    DATA_SET,
    AllowOverlap,
    AnyClassifier,
    ClassNames,
    Import,
    LabelFiles,
    Layout,
    Probabilities,
    Resamples,
    Seed,
    Tests,
    Views,
    check_outputs,
    load_sets,
    option,
    read_class_names,
    read_paths,
    select_given,
    select_names,
)
from rightly.optional import require

EXAMPLE = "rightly report cal.safetensors test.npz --out report.html"
FUNCTIONS = ("rightly.reporting:report",)


def run(
    calibrator: Annotated[
        str,
        typer.Argument(
            metavar="CALIBRATOR",
            help="Saved calibrator (.safetensors), or a method to fit on --cal.",
        ),
    ],
    tests: Tests,
    out: Annotated[Path, option("out", metavar="FILE")],
    modules: Import = None,
    cal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Calibration predictions with labels, to fit --methods on: {DATA_SET}.",
            show_default="no comparison",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        option(
            "methods",
            metavar="NAME,NAME",
            show_default="uncalibrated, temperature_scaling, ensemble_temperature_scaling, spline",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        option("metrics", metavar="NAME,NAME", show_default="ece,brier,ks,auroc,aurc"),
    ] = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    images: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the collected images.")
    ] = None,
    layout: Layout = "auto",
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Groups of rows: columns group and image or row (and test).",
        ),
    ] = None,
    class_names: ClassNames = None,
    title: Annotated[str, typer.Option(help="Name of the model.")] = "this classifier",
    resamples: Resamples = None,
    seed: Seed = 0,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Write one HTML page: can this confidence be trusted?"""
    options = {
        "cal": cal,
        "methods": methods,
        "metrics": metrics,
        "views": views,
        "labels": labels,
        "probabilities": probabilities,
        "images": images,
        "layout": layout if images is not None else None,
        "groups": groups,
        "class-names": class_names,
        "title": title,
        "resamples": resamples,
        "seed": seed,
        "any-classifier": any_classifier,
        "allow-overlap": allow_overlap,
        "out": out,
    }
    is_file = calibrator.endswith(".safetensors") or Path(calibrator).is_file()
    if not is_file and cal is None:
        raise ValueError(
            f"calibrator must be a saved one (.safetensors), or a method with --cal FILE to fit "
            f"it on, got {calibrator!r}"
        )
    require("jinja2", "report")
    from rightly.datasets import open_images
    from rightly.reporting import report
    from rightly.reporting.formatting import describe_accuracy

    paths = read_paths(tests)
    check_outputs([out], [calibrator, cal, groups, *paths.values()])
    data = [*paths.values(), *([] if cal is None else [cal])]
    sets = load_sets(data, labels, probabilities, views)
    made = report(
        calibrator,
        dict(zip(paths, sets, strict=False)),
        out,
        cal=None if cal is None else sets[-1],
        images=None if images is None else open_images(images, layout=layout),
        groups=groups,
        class_names=read_class_names(class_names),
        title=title,
        resamples=resamples,
        seed=seed,
        progress=True,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        command=_spell([calibrator, *tests], options),
        **select_given(methods=select_names(methods), metrics=select_names(metrics)),
    )
    if made.comparison is not None:
        print_skipped(made.comparison.skipped)
    for line in describe_accuracy(made.evaluation.accuracy):
        print_line(line)
    for line in made.evaluation.decision_notes:
        print_line(line)
    print_line(f"the report is in {out}")


def _spell(arguments: list[str], options: dict[str, Any]) -> str:
    """The command that makes this report, every option spelled out."""
    words = ["rightly", "report", *arguments]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(f"--{name}")
            elif one is not None and one is not False:
                words += [f"--{name}", str(one)]
    return shlex.join(words)
