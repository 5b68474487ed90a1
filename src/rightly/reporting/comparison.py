"""Many calibrators on the same test sets, and their ranks over several classifiers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rightly.calibrators import AnyCalibrator
from rightly.evaluation.data_sets import LabelledSet, TestSets, load_data_set, load_test_sets
from rightly.evaluation.leakage import CalibrationData, check_test_sets, measure_accuracies
from rightly.evaluation.measurement import TABLE_METRICS, Progress, compare_methods
from rightly.evaluation.method_selection import resolve_methods
from rightly.evaluation.results import Bootstrap, MethodRank, Result, mean_ranks, unique
from rightly.metrics import METRICS
from rightly.reporting.formatting import format_units
from rightly.reporting.layout import Layout, lay_out_comparison, lay_out_ranking
from rightly.reporting.result_table import (
    FilePath,
    ResultTable,
    count,
    describe_bootstrap,
    read_results,
    restore_nan,
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultTable[Result]):
    """One result a calibrator, test set, metric and seed.

    `skipped` holds the methods that were not compared, with the inputs they need. A comparison
    read from a file has neither calibrators nor data.
    """

    kind = "comparison"

    results: Sequence[Result]
    bootstrap: Bootstrap | None = None  # with resamples and reference as they were used
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calibrators: Mapping[str, AnyCalibrator] = field(default_factory=dict)  # of the first seed
    cal: LabelledSet | None = None
    tests: TestSets = field(default_factory=dict)
    accuracy: Mapping[str, float] = field(default_factory=dict)  # the classifier's, by test set

    @property
    def rows(self) -> Sequence[Result]:
        return self.results

    @property
    def methods(self) -> list[str]:
        return unique(row.calibrator for row in self.results)

    @property
    def datasets(self) -> list[str]:
        return unique(row.dataset for row in self.results)

    @property
    def metrics(self) -> list[str]:
        return unique(row.metric for row in self.results)

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.results]

    def lay_out(self) -> Layout:
        return lay_out_comparison(self.results, self.bootstrap, self.accuracy)

    def describe(self) -> dict[str, Any]:
        skipped = {name: list(needs) for name, needs in self.skipped.items()}
        accuracy = dict(self.accuracy)
        return {**describe_bootstrap(self.bootstrap), "skipped": skipped, "accuracy": accuracy}

    @classmethod
    def load(cls, path: FilePath) -> "Comparison":
        """A comparison that `to_json` wrote: its values, without calibrators and data."""
        content = read_results(path, cls.kind)
        try:
            results = [Result(**restore_nan(row)) for row in content["rows"]]
            bootstrap = content["bootstrap"]
            skipped = {name: tuple(needs) for name, needs in content["skipped"].items()}
            unknown = [row.metric for row in results if row.metric not in METRICS]
            if unknown or not results:
                raise ValueError(f"unknown metric {unknown[0]!r}" if unknown else "no rows")
            accuracy = {name: float(x) for name, x in content.get("accuracy", {}).items()}
            asked = None if bootstrap is None else Bootstrap(**bootstrap)
            return cls(results, asked, skipped, accuracy=accuracy)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)} is damaged ({error}): write it again with to_json"
            ) from error

    def plot(self, kind: str = "values", **options: Any) -> Any:
        """Draws one of `rightly.reporting.figures.FIGURES` and returns its first axes.

        `options` are fields of FigureData: metric, bins, method, resamples, seed.
        """
        from rightly.reporting.figures.kinds import FIGURES, FigureData, draw_figure

        if not self.calibrators and kind in FIGURES and FIGURES[kind].needs != "results":
            raise ValueError(
                f"the figure {kind} needs calibrators and data, which a comparison read from a "
                "file does not have: draw the figure values, or compare again"
            )
        options = {"metric": self.metrics[0] if kind == "values" else "brier", **options}
        data = FigureData(self.tests, self.calibrators, self.cal, self.results, **options)
        return draw_figure(kind, data)

    def __repr__(self) -> str:
        size = f"{count(self.methods, 'method')} on {count(self.datasets, 'test set')}"
        tests = ""
        if self.bootstrap is not None:
            tests = f", tested against {self.bootstrap.reference}"
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Comparison: {size}, {count(self.metrics, 'metric')}{tests}{skipped}>"


def compare(
    cal: Any,
    tests: Mapping[str, Any],
    *,
    methods: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    bootstrap: Bootstrap | None = None,
    progress: Progress | None = None,
    any_classifier: bool = False,
    allow_overlap: bool = False,
) -> Comparison:
    """Fits methods on the calibration data and measures them on every test set.

    A data set is a path or (predictions, labels); one with shifted rows makes several test sets.
    `methods` are names, aliases or groups, or "all"; without any, the groups baseline, paper and
    own. Of a group, those methods are compared whose inputs are in all data. `metrics` are names,
    or "all". What draws at random is fitted once a seed. With a `Bootstrap`, values have intervals
    and paired tests. Test sets of another classifier, or with more than 1 % of the calibration
    rows, are refused unless `any_classifier` or `allow_overlap`.
    """
    fitted_on, on = load_data_set(cal, argument="cal"), load_test_sets(tests)
    known = CalibrationData.of_predictions(fitted_on[0])
    check_test_sets([known], on, any_classifier, allow_overlap)
    chosen, skipped = resolve_methods(methods, fitted_on, on)
    results, calibrators = compare_methods(
        fitted_on, on, chosen, metrics, seeds, bootstrap, progress
    )
    resolved = None if bootstrap is None else bootstrap.resolve(chosen)
    accuracy = measure_accuracies(on)
    return Comparison(results, resolved, skipped, calibrators, fitted_on, on, accuracy)


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(ResultTable[MethodRank]):
    """Calibrators over several classifiers, best mean rank first.

    `skipped` names the calibrators that not every classifier has.
    """

    kind = "ranking"

    ranks: Sequence[MethodRank]
    classifiers: Sequence[str]
    skipped: Sequence[str] = ()

    @property
    def rows(self) -> Sequence[MethodRank]:
        return self.ranks

    def to_records(self) -> list[dict[str, Any]]:
        return [
            {
                "calibrator": one.calibrator,
                "mean_rank": one.mean_rank,
                **{f"{metric}_mean": value for metric, value in one.mean.items()},
                **{f"{metric}_spread": value for metric, value in one.spread.items()},
                **{f"{metric}_rank": value for metric, value in one.rank.items()},
            }
            for one in self.ranks
        ]

    def lay_out(self) -> Layout:
        note = (
            f"Over {count(self.classifiers, 'classifier')}: mean over test sets ± standard "
            "deviation over classifiers; ranks count from 1 over metrics, test sets and "
            "classifiers, and ties share their mean. Values "
            f"{format_units(self.ranks[0].mean)}."
        )
        return lay_out_ranking(self.ranks, (note,))

    def describe(self) -> dict[str, Any]:
        return {"classifiers": list(self.classifiers), "skipped": list(self.skipped)}

    def plot(self, kind: str = "ranks", **options: Any) -> Any:
        """Draws the mean ranks as bars on `ax`, or new axes, and returns them."""
        import numpy as np

        from rightly.reporting.figures.studies import Bars, draw_bars

        if kind != "ranks":
            raise ValueError(f"kind must be 'ranks' for a ranking, got {kind!r}")
        value = np.array([one.mean_rank for one in self.ranks])
        bars = Bars([one.calibrator for one in self.ranks], value, value, value)
        return draw_bars(bars, label="mean rank", **options)

    def __repr__(self) -> str:
        size = f"{count(self.ranks, 'method')} over {count(self.classifiers, 'classifier')}"
        return f"<Ranking: {size}, best {self.ranks[0].calibrator}>"


def rank(comparisons: Mapping[str, Comparison | FilePath]) -> Ranking:
    """Mean, spread and mean rank of the calibrators that every classifier has.

    `comparisons` maps a classifier's name to its comparison, or the path of its JSON.
    """
    if not isinstance(comparisons, Mapping) or not comparisons:
        raise TypeError(
            "comparisons must map names of classifiers to comparisons or paths of their JSON, "
            f"got {type(comparisons).__name__}"
        )
    loaded = {
        name: one if isinstance(one, Comparison) else Comparison.load(one)
        for name, one in comparisons.items()
    }
    ranks = mean_ranks({name: one.results for name, one in loaded.items()})
    ranked = {one.calibrator for one in ranks}
    methods = unique(method for one in loaded.values() for method in one.methods)
    return Ranking(ranks, list(loaded), [name for name in methods if name not in ranked])
