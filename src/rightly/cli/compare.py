"""`rightly compare`: many calibrators, on the same test sets."""

from typing import Annotated

from rightly.cli.console import OUT, print_line, print_skipped
from rightly.cli.options import (
    Adapt,
    AllowOverlap,
    AnyClassifier,
    Cal,
    Import,
    Intervals,
    Json,
    LabelFiles,
    Methods,
    Metrics,
    Plot,
    Probabilities,
    Reference,
    Repeats,
    Resamples,
    Seed,
    Tests,
    Views,
    check_outputs,
    check_plot,
    kind_option,
    load_sets,
    option,
    read_adapt,
    read_paths,
    select_given,
    select_names,
)

EXAMPLE = "rightly compare cal.npz id=test.npz blur=blurred.npz"
FUNCTIONS = ("rightly.evaluation.compare:compare",)
KINDS = ("values", "reliability", "smooth", "roc", "risk-coverage", "histogram", "ks") + (
    "temperature",
    "views",
    "budget",
)


def run(
    cal: Cal,
    tests: Tests,
    modules: Import = None,
    methods: Methods = None,
    metrics: Metrics = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    repeats: Repeats = 1,
    reference: Reference = None,
    intervals: Intervals = True,
    resamples: Resamples = None,
    seed: Seed = 0,
    adapt: Adapt = None,
    plot: Plot = None,
    kind: Annotated[str | None, kind_option(KINDS)] = None,
    json: Json = None,
    track: Annotated[str | None, option("track", metavar="TRACKER")] = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Fit many calibrators and compare them on test sets."""
    from rightly.evaluation.compare import compare
    from rightly.reporting.terminal import render_comparison, show

    check_outputs([plot, json], [cal, *tests])
    kind = check_plot(plot, kind, KINDS)
    paths = read_paths(tests)
    data, *sets = load_sets([cal, *paths.values()], labels, probabilities, views)
    comparison = compare(
        data,
        dict(zip(paths, sets, strict=True)),
        methods=select_names(methods),
        intervals=intervals,
        resamples=resamples,
        reference=reference,
        repeats=repeats,
        seed=seed,
        progress=True,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        adapt=read_adapt(adapt),
        track=track,
        **select_given(metrics=select_names(metrics)),
    )
    print_skipped(comparison.skipped)
    show(OUT, render_comparison, comparison)
    if json:
        comparison.to_json(json)
    if plot:
        from rightly.reporting.figures import save

        options = select_given(resamples=resamples)
        save(comparison.plot(kind, seed=seed, **options), plot)
        print_line(f"the figure is in {plot}")
