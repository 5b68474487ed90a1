"""`rightly benchmark`: methods over classifiers, from a folder of predictions or of results."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line, print_skipped
from rightly.cli.options import (
    Adapt,
    AllowOverlap,
    AnyClassifier,
    Import,
    Json,
    LabelFiles,
    Metrics,
    Probabilities,
    Reference,
    Repeats,
    Resamples,
    Seed,
    Views,
    check_outputs,
    option,
    read_adapt,
    select_given,
    select_names,
    split_labels,
    split_names,
)

EXAMPLE = "rightly benchmark predictions/ --out results/"
FUNCTIONS = ("rightly:benchmark", "rightly.evaluation.benchmark:Benchmark.save")


def run(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Predictions with labels as DIR/CLASSIFIER/SET.npz; or results, one file per "
            "classifier, that compare --json wrote.",
        ),
    ],
    out: Annotated[Path | None, option("out", metavar="FOLDER", show_default="none")] = None,
    modules: Import = None,
    methods: Annotated[str, option("methods", metavar="NAME,NAME")] = "all",
    metrics: Metrics = None,
    repeats: Repeats = 1,
    cal: Annotated[str, typer.Option(metavar="SET", help="Set to fit on.")] = "cal",
    classifiers: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Classifiers joined by commas.", show_default="all"),
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(
            metavar="SET,SET", help="Sets to measure on, joined by commas.", show_default="others"
        ),
    ] = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    reference: Reference = None,
    resamples: Resamples = None,
    seed: Seed = 0,
    rope: Annotated[
        float, typer.Option(help="Difference up to which methods are equal, as a fraction.")
    ] = 0.001,
    figures: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Methods to draw, joined by commas.",
            show_default="uncalibrated, temperature_scaling and the best",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="New values for what other data or settings gave.")
    ] = False,
    adapt: Adapt = None,
    json: Json = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Compare methods over many classifiers.

    A run that was stopped goes on when it is repeated. A folder of results is ranked.
    """
    from rightly.calibrators import CALIBRATORS
    from rightly.evaluation.benchmark import benchmark, find_results
    from rightly.reporting.terminal import render_benchmark, show

    results = find_results(folder)
    check_outputs([json], results)
    if out is None and not results:
        raise ValueError("benchmark needs a folder for tables and figures: add --out FOLDER")
    drawn = None if figures is None else [CALIBRATORS.find(n).name for n in split_names(figures)]
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
        progress=True,
        notify=lambda line: print_line(line, ERR, style="dim"),
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        adapt=read_adapt(adapt),
        labels=split_labels(labels),
        probabilities=probabilities,
        **select_given(metrics=select_names(metrics)),
    )
    print_skipped(result.skipped)
    written = [] if out is None else result.save(out, drawn)
    show(OUT, render_benchmark, result)
    if json:
        result.to_json(json)
    if written:
        print_line(f"{len(written)} files are in {out}: index.html shows them")
