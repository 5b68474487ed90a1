"""`rightly benchmark`: methods over classifiers, from a folder of predictions."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line, print_skipped, show_steps
from rightly.cli.inputs import (
    Adapt,
    AllowOverlap,
    AnyClassifier,
    LabelFiles,
    Metrics,
    Probabilities,
    Reference,
    Repeats,
    Seed,
    Views,
    parse_adapt,
    select_given,
    select_names,
    split_labels,
    split_names,
)

EXAMPLE = "rightly benchmark predictions/ --out results/"


def run(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Predictions with labels as DIR/CLASSIFIER/SET.npz."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Tables and figures; fits are kept here too.")
    ],
    methods: Annotated[
        str, typer.Option(help="all, or names and groups joined by commas (rightly methods).")
    ] = "all",
    metrics: Metrics = None,
    repeats: Repeats = 1,
    cal: Annotated[str, typer.Option(metavar="SET", help="The set to fit on.")] = "cal",
    classifiers: Annotated[
        str | None, typer.Option(help="Names joined by commas.", show_default="all")
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(help="Sets to measure on, joined by commas.", show_default="all others"),
    ] = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    reference: Reference = None,
    resamples: Annotated[
        int | None,
        typer.Option(help="Bootstrap resamples of classifiers.", show_default="1000 or more"),
    ] = None,
    seed: Seed = 0,
    rope: Annotated[
        float, typer.Option(help="Difference up to which methods are the same, as a share.")
    ] = 0.001,
    figures: Annotated[
        str | None,
        typer.Option(
            metavar="METHODS",
            help="Methods to draw, joined by commas.",
            show_default="uncalibrated, temperature_scaling and the best",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Measure again what other data or settings gave.")
    ] = False,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
    adapt: Adapt = None,
) -> None:
    """Compare methods over many classifiers."""
    from rightly.calibrators import CALIBRATORS
    from rightly.reporting import benchmark
    from rightly.reporting.terminal import render_benchmark, show

    with show_steps() as progress:
        result = benchmark(
            folder,
            out=out,
            methods=select_names(methods),
            repeats=repeats,
            seed=seed,
            cal=cal,
            classifiers=None if classifiers is None else split_names(classifiers),
            tests=None if tests is None else split_names(tests),
            views=split_names(views) or None,
            resamples=resamples,
            reference=reference,
            rope=rope,
            replace=replace,
            progress=progress,
            notify=lambda line: print_line(line, ERR, style="dim"),
            any_classifier=any_classifier,
            allow_overlap=allow_overlap,
            adapt=parse_adapt(adapt),
            labels=split_labels(labels),
            probabilities=probabilities,
            **select_given(metrics=metrics),
        )
    print_skipped(result.skipped)
    drawn = None if figures is None else [CALIBRATORS.find(n).name for n in split_names(figures)]
    written = result.save(out, drawn)
    show(OUT, render_benchmark, result)
    print_line(f"{len(written)} files are in {out}: index.html shows them")
