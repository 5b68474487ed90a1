"""`rightly compare`: many calibrators, on the same test sets."""

from typing import Annotated

import typer

from rightly.cli.console import OUT
from rightly.cli.inputs import (
    BootstrapSeed,
    Cal,
    Intervals,
    Json,
    Methods,
    Metrics,
    On,
    Resamples,
    Views,
    read_data_set,
    read_test_sets,
    split_names,
)

EXAMPLE = "rightly compare cal.npz --on id=test.npz --on blur=blurred.npz"


def run(
    cal: Cal,
    on: On,
    methods: Methods = None,
    metrics: Metrics = None,
    views: Views = None,
    seeds: Annotated[int, typer.Option(help="How often to fit what draws at random.")] = 1,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The method that the others are tested against.",
            show_default="temperature_scaling, or the first where that is not compared",
        ),
    ] = None,
    intervals: Intervals = True,
    resamples: Resamples = None,
    bootstrap_seed: BootstrapSeed = 0,
    json: Json = None,
) -> None:
    """Fit many calibrators and compare them on test sets."""
    from rightly.cli import _legacy_reporting as reporting

    if reference and not intervals:
        raise ValueError("--reference has no meaning with --no-intervals: leave one of them out")
    data = read_data_set(cal, split_names(views))
    tests = read_test_sets(on, split_names(views))
    names = reporting.select_methods(methods, data[0], tests)
    bootstrap = None
    if intervals:
        bootstrap = reporting.make_bootstrap(names, resamples, bootstrap_seed, reference)
    rows = reporting.compare_with_progress(
        *data, tests, names, reporting.select_metrics(metrics), seeds, bootstrap
    )
    reporting.print_results(rows, OUT, bootstrap)
    if json:
        reporting.write_results(json, rows, bootstrap)
