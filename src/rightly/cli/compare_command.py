"""`rightly compare`: many calibrators, on the same test sets."""

from typing import Annotated

import typer

from rightly.cli.console import OUT, print_skipped, show_steps
from rightly.cli.inputs import (
    Adapt,
    AllowOverlap,
    AnyClassifier,
    Cal,
    Intervals,
    Json,
    LabelFiles,
    Methods,
    Metrics,
    On,
    Probabilities,
    Reference,
    Repeats,
    Resamples,
    Seed,
    Views,
    parse_adapt,
    read_data_sets,
    read_paths,
    select_given,
    select_names,
)

EXAMPLE = "rightly compare cal.npz --on id=test.npz --on blur=blurred.npz"


def run(
    cal: Cal,
    on: On,
    methods: Methods = None,
    metrics: Metrics = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    repeats: Repeats = 1,
    seed: Seed = 0,
    reference: Reference = None,
    intervals: Intervals = True,
    resamples: Resamples = None,
    json: Json = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
    adapt: Adapt = None,
    track: Annotated[
        str | None,
        typer.Option(metavar="TRACKER", help="Send results to mlflow or wandb, if installed."),
    ] = None,
) -> None:
    """Fit many calibrators and compare them on test sets."""
    from rightly.evaluation.compare import compare
    from rightly.reporting.terminal import render_comparison, show

    paths = read_paths(on)
    data, *sets = read_data_sets([cal, *paths.values()], labels, probabilities, views)
    tests = dict(zip(paths, sets, strict=True))
    with show_steps() as progress:
        comparison = compare(
            data,
            tests,
            methods=select_names(methods),
            intervals=intervals,
            resamples=resamples,
            reference=reference,
            repeats=repeats,
            seed=seed,
            progress=progress,
            any_classifier=any_classifier,
            allow_overlap=allow_overlap,
            adapt=parse_adapt(adapt),
            track=track,
            **select_given(metrics=metrics),
        )
    print_skipped(comparison.skipped)
    show(OUT, render_comparison, comparison)
    if json:
        comparison.to_json(json)
