"""Figures of a benchmark: mean ranks, and grids of panels over classifiers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rightly.checks import check_choice
from rightly.evaluation.results import count
from rightly.reporting.over_classifiers.method_tests import FIGURE

if TYPE_CHECKING:
    from rightly.reporting.over_classifiers.benchmarks import Benchmark

KINDS = (FIGURE, "reliability", "roc", "risk-coverage")
USUAL = ("uncalibrated", "temperature_scaling")  # and the best of the others


def draw_benchmark(
    benchmark: "Benchmark",
    kind: str,
    methods: Sequence[str] | None = None,
    dataset: str | None = None,
    metric: str | None = None,
) -> Any:
    """Draws one kind of figure and returns one of its axes."""
    check_choice("kind", kind, KINDS)
    if kind == FIGURE:
        if benchmark.tests is None:
            raise ValueError(
                f"the figure {kind} needs two classifiers and two methods, got "
                f"{count(benchmark.classifiers, 'classifier')} and "
                f"{count(benchmark.methods, 'method')}: add some"
            )
        return benchmark.tests.plot(kind, metric)
    if dataset is not None:
        check_choice("dataset", dataset, benchmark.datasets)
    from rightly.reporting.figures.classifier_grids import draw_curve_grid, draw_reliability_grid

    chosen = choose_methods(benchmark, methods)
    datasets = benchmark.datasets if dataset is None else [dataset]
    panels = {
        (classifier, name): {
            method: benchmark.read_outcomes(classifier, method, name) for method in chosen
        }
        for classifier in benchmark.classifiers
        for name in (datasets[:1] if kind == "reliability" else datasets)
    }
    if kind != "reliability":
        return draw_curve_grid(kind, panels)
    single = {
        (classifier, method): one
        for (classifier, _), of_methods in panels.items()
        for method, one in of_methods.items()
    }
    return draw_reliability_grid(single, datasets[0])


def choose_methods(benchmark: "Benchmark", methods: Sequence[str] | None = None) -> list[str]:
    """The methods to draw: those named, or the usual ones and the best by mean rank."""
    if methods is not None:
        unknown = [name for name in methods if name not in benchmark.methods]
        if unknown or not methods:
            raise ValueError(
                "figures must be methods that every classifier has, "
                f"{', '.join(benchmark.methods)}; got {', '.join(unknown) or 'none'}"
            )
        return list(methods)
    usual = [name for name in USUAL if name in benchmark.methods]
    ranks: dict[str, list[float]] = {}
    for row in benchmark.rows:
        if row.dataset == benchmark.grid.datasets[-1] and not math.isnan(row.rank):
            ranks.setdefault(row.calibrator, []).append(row.rank)
    others = [name for name in ranks if name not in usual]
    best = min(others, key=lambda name: sum(ranks[name]) / len(ranks[name]), default=None)
    return usual if best is None else [*usual, best]
