"""Methods over classifiers by folder: measured once, kept, averaged, tested, drawn."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rightly.evaluation.adapted_sets import check_batch
from rightly.evaluation.measurement import TABLE_METRICS, Progress, resolve_metrics
from rightly.evaluation.over_classifiers.fits import FitKey, FitStore
from rightly.evaluation.over_classifiers.folders import find_classifiers
from rightly.evaluation.over_classifiers.measuring import (
    Task,
    check_kept,
    measure_classifiers,
    plan_classifier,
)
from rightly.evaluation.over_classifiers.method_tests import compare_over_classifiers
from rightly.evaluation.over_classifiers.value_grid import MEAN, MeanResult, ValueGrid, build_grid
from rightly.evaluation.results import Bootstrap
from rightly.metrics import Outcomes
from rightly.predictions.store import lock_folder
from rightly.reporting.comparison import Comparison
from rightly.reporting.formatting import describe_adapting
from rightly.reporting.layout import Layout
from rightly.reporting.over_classifiers.layouts import describe_means, lay_out_means
from rightly.reporting.over_classifiers.method_tests import MethodTests
from rightly.reporting.over_classifiers.notes import build_comparison, describe_fits
from rightly.reporting.progress_line import follow
from rightly.reporting.result_table import ResultTable, count, describe_bootstrap

ROPE = 0.001  # a tenth of a point: for less nobody changes a method
FITS = "fits"  # the folder of what is kept, below `out`


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(ResultTable[MeanResult]):
    """One row a method, test set and metric: the mean over classifiers, which all have it.

    `comparisons` holds each classifier's own values; `skipped` the methods that none could use,
    with the inputs they need.
    """

    kind = "benchmark"

    comparisons: Mapping[str, Comparison]
    grid: ValueGrid
    bootstrap: Bootstrap  # of classifiers, with resamples and reference as they were used
    store: FitStore
    rope: float = ROPE
    notes: Sequence[str] = ()

    @cached_property
    def rows(self) -> Sequence[MeanResult]:
        return self.grid.average(self.bootstrap)

    @property
    def classifiers(self) -> Sequence[str]:
        return self.grid.classifiers

    @property
    def methods(self) -> Sequence[str]:
        return self.grid.methods

    @property
    def datasets(self) -> list[str]:
        return [name for name in self.grid.datasets if name != MEAN]

    @property
    def skipped(self) -> dict[str, tuple[str, ...]]:
        return {
            name: needs for one in self.comparisons.values() for name, needs in one.skipped.items()
        }

    @cached_property
    def tests(self) -> MethodTests | None:
        """Tests over classifiers; None where there is one classifier or method only."""
        if len(self.classifiers) < 2 or len(self.methods) < 2:
            return None
        reference = self.bootstrap.reference
        assert reference is not None
        tests, metrics = compare_over_classifiers(
            self.grid, reference, self.rope, self.bootstrap.seed
        )
        return MethodTests(tests, metrics, reference, self.rope) if tests else None

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.rows]

    def list_values(self) -> list[dict[str, Any]]:
        """Every value: a record a classifier, method, test set, metric and seed."""
        return [
            {"classifier": name, **record}
            for name, one in self.comparisons.items()
            for record in one.to_records()
        ]

    def lay_out(self) -> Layout:
        legend = describe_means(self.rows, self.classifiers, self.bootstrap)
        return lay_out_means(self.rows, self.classifiers, [*legend, *self.notes])

    def describe(self) -> dict[str, Any]:
        return {
            "classifiers": list(self.classifiers),
            **describe_bootstrap(self.bootstrap),
            "skipped": {name: list(needs) for name, needs in self.skipped.items()},
            "notes": list(self.notes),
            "tests": None if self.tests is None else self.tests.describe(),
        }

    def plot(self, kind: str = "critical-difference", **options: Any) -> Any:
        """Draws a figure and returns one of its axes; `.figure` holds them all.

        `critical-difference` is of one `metric`. `reliability` has a panel a classifier and method,
        on one `dataset`; `roc` and `risk-coverage` one a classifier and test set. Without `methods`
        these are uncalibrated, temperature_scaling and the best by mean rank.
        """
        from rightly.reporting.over_classifiers.pictures import draw_benchmark

        return draw_benchmark(self, kind, **options)

    def read_outcomes(self, classifier: str, method: str, dataset: str) -> Outcomes:
        """Confidence and correctness of the first seed's fit on one test set."""
        return self.store.read_outcomes(FitKey(classifier, method, 0), dataset)

    def save(
        self,
        folder: str | os.PathLike[str],
        figures: Sequence[str] | None = None,
    ) -> list[Path]:
        """Writes every table and figure into a folder, and returns their paths."""
        from rightly.reporting.over_classifiers.files import write_benchmark

        return write_benchmark(self, Path(folder), figures)

    def __repr__(self) -> str:
        size = f"{count(self.methods, 'method')} on {count(self.datasets, 'test set')}"
        return f"<Benchmark: {size}, {count(self.classifiers, 'classifier')}>"


def benchmark(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    methods: str | Sequence[str] | None = "all",
    metrics: str | Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    cal: str = "cal",
    classifiers: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    views: Sequence[str] | None = None,
    bootstrap: Bootstrap | None = None,
    rope: float = ROPE,
    replace: bool = False,
    progress: Progress | bool | None = None,
    notify: Callable[[str], object] | None = None,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    adapt: bool = False,
    batch: int | None = None,
    labels: Mapping[Any, str | os.PathLike[str]] | None = None,
    probabilities: bool = False,
) -> Benchmark:
    """Fits methods for every classifier of a folder, FOLDER/CLASSIFIER/SET, and averages over them.

    Each is fitted on the set named `cal` and measured on all others, or those in `tests`. Fits are
    kept below `out` as they are made: a stopped call goes on when it is repeated, and one with more
    methods, classifiers or seeds adds what is new. Fits of other data or settings are refused, or
    measured again with `replace`. `methods`, `metrics`, `seeds`, `views`, `any_classifier`,
    `allow_overlap`, `adapt` and `batch` are those of `compare`; `bootstrap` resamples classifiers,
    and names the reference of the tests, in which differences within `rope` are none. A method that
    came with a group and cannot be fitted is left out; `notify` is called with a line about it.
    `labels` maps paths of data sets without labels to files with them; with `probabilities`, arrays
    hold these, as in `load`.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    check_batch(adapt, batch)
    if not 0 <= rope < 1:
        raise ValueError(f"rope must be a difference of at least 0 and below 1, got {rope}")
    place = None if out is None else Path(out)
    if place is not None and Path(folder).resolve() in (place.resolve(), *place.resolve().parents):
        raise ValueError(
            f"out must lie outside of the folder of the classifiers, {folder}, where it would be "
            f"taken for one, got {place}: choose another out"
        )
    found = find_classifiers(folder, cal, classifiers, tests)
    chosen = resolve_metrics(metrics)
    files = {Path(path): Path(file) for path, file in (labels or {}).items()}
    options = (views, any_classifier, allow_overlap, adapt, batch, files, probabilities)
    task = Task(methods, chosen, seeds, *options)
    kept = None
    if place is not None:
        kept = place / FITS
        kept.mkdir(parents=True, exist_ok=True)
    with nullcontext() if kept is None else lock_folder(kept), follow(progress) as step:
        store, plans = FitStore(kept), {}
        for i, (name, one) in enumerate(found.classifiers.items()):
            if step is not None:
                step(f"{name}: reading", i, len(found.classifiers))
            plans[name] = plan_classifier(name, one, task)
        if not replace:
            check_kept(store, plans, seeds)
        fits = measure_classifiers(plans, task, store, step, notify)
    comparisons = {name: build_comparison(one, task) for name, one in fits.items()}
    grid = build_grid({name: one.results for name, one in comparisons.items()})
    asked = (bootstrap or Bootstrap()).resolve(list(grid.methods))
    notes = [*describe_adapting(adapt, batch), *grid.missing]
    notes += [*describe_fits(fits, grid, found.unread)]
    return Benchmark(comparisons, grid, asked, store, rope, notes)
