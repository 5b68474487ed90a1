"""`rightly report`: one HTML page."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from rightly.cli.console import print_line
from rightly.cli.inputs import (
    BootstrapSeed,
    Cal,
    FitSeed,
    On,
    Resamples,
    Views,
    read_data_set,
    read_test_sets,
    split_names,
    split_test_set,
)

EXAMPLE = "rightly report cal.npz --on test.npz --out report.html"


def run(
    cal: Cal,
    on: On,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write (.html).")],
    method: Annotated[str, typer.Option(help="The method the report is about.")] = "rightly",
    methods: Annotated[
        str, typer.Option(help="Methods to compare it with, joined by commas.")
    ] = "uncalibrated,temperature_scaling,ensemble_temperature_scaling,spline",
    views: Views = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the images that were collected are."),
    ] = None,
    layout: Annotated[str, typer.Option(help="Of --images, as for collect.")] = "auto",
    title: Annotated[str, typer.Option(help="What the model is called.")] = "this classifier",
    resamples: Resamples = None,
    fit_seed: FitSeed = 0,
    bootstrap_seed: BootstrapSeed = 0,
) -> None:
    """Write one HTML page: can this confidence be trusted?"""
    options = {
        "on": on,
        "method": method,
        "methods": methods,
        "views": views,
        "images": images,
        "layout": layout,
        "title": title,
        "resamples": resamples,
        "fit-seed": fit_seed,
        "bootstrap-seed": bootstrap_seed,
        "out": out,
    }
    from rightly.cli import _legacy_reporting as reporting
    from rightly.evaluation.measurement import TABLE_METRICS, fitted_by
    from rightly.evaluation.results import unique
    from rightly.reporting import html

    predictions, labels = read_data_set(cal, split_names(views))
    tests = read_test_sets(on, split_names(views))
    names = unique([*split_names(methods), method])
    bootstrap = reporting.make_bootstrap(names, resamples, bootstrap_seed)
    rows = reporting.compare_with_progress(
        predictions, labels, tests, names, TABLE_METRICS, 1, bootstrap
    )
    files = [cal, *(split_test_set(item)[1] for item in on)]
    study = reporting.study_of(
        predictions,
        labels,
        tests,
        fitted_by(method, predictions, labels, fit_seed),
        rows,
        bootstrap,
        title=title,
        command=_spell(cal, options),
        digests={str(path): reporting.digest(path) for path in files},
        pictures=None if images is None else reporting.open_pictures(images, layout, on),
        seed=fit_seed,
    )
    html.write(out, study)
    print_line(f"the report is in {out}")


def _spell(cal: Path, options: dict[str, Any]) -> str:
    """The command that makes this report, every option spelled out."""
    words = ["rightly", "report", str(cal)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [f"--{name}", str(one)]
    return shlex.join(words)
