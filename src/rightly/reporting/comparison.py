"""Many calibrators on the same test sets."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rightly.calibrators import AnyCalibrator, Method
from rightly.evaluation.adapted_sets import adapt_to_sets, check_batch
from rightly.evaluation.data_sets import (
    LabelledSet,
    TestSets,
    load_data_set,
    load_test_sets,
    measure_accuracies,
)
from rightly.evaluation.given_methods import MethodLikes, sort_given
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import TABLE_METRICS, Progress, compare_methods
from rightly.evaluation.method_selection import resolve_methods
from rightly.evaluation.results import Bootstrap, Result, unique
from rightly.metrics import METRICS
from rightly.reporting.formatting import describe_adapting
from rightly.reporting.layout import Layout, lay_out_comparison
from rightly.reporting.progress_line import follow
from rightly.reporting.result_table import (
    FilePath,
    ResultTable,
    count,
    describe_bootstrap,
    read_results,
    restore_nan,
)
from rightly.reporting.trackers import check_tracker, log_comparison


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultTable[Result]):
    """One result a calibrator, test set, metric and seed.

    `skipped` holds the methods that were not compared, with the inputs they need; `notes` what
    should be known about single fits. A comparison read from a file has neither calibrators nor
    data.
    """

    kind = "comparison"

    results: Sequence[Result]
    bootstrap: Bootstrap | None = None  # with resamples and reference as they were used
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calibrators: Mapping[str, AnyCalibrator] = field(default_factory=dict)  # of the first seed
    cal: LabelledSet | None = None
    tests: TestSets = field(default_factory=dict)
    accuracy: Mapping[str, float] = field(default_factory=dict)  # the classifier's, by test set
    notes: Sequence[str] = ()
    adapt: bool = False  # to each test set, without its labels
    batch: int | None = None  # the rows of a batch, or the whole test set

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
        notes = [*describe_adapting(self.adapt, self.batch), *self.notes]
        return lay_out_comparison(self.results, self.bootstrap, self.accuracy, notes)

    def describe(self) -> dict[str, Any]:
        return {
            **describe_bootstrap(self.bootstrap),
            "skipped": {name: list(needs) for name, needs in self.skipped.items()},
            "accuracy": dict(self.accuracy),
            "notes": list(self.notes),
            "adapt": self.adapt,
            "batch": self.batch,
        }

    @classmethod
    def load(cls, path: FilePath) -> "Comparison":
        """A comparison that `to_json` wrote: its values, without calibrators and data."""
        content = read_results(path, cls.kind)
        try:
            results = [_restore_result(row) for row in content["rows"]]
            bootstrap = content["bootstrap"]
            skipped = {name: tuple(needs) for name, needs in content["skipped"].items()}
            unknown = [row.metric for row in results if row.metric not in METRICS]
            if unknown or not results:
                raise ValueError(f"unknown metric {unknown[0]!r}" if unknown else "no rows")
            accuracy = {name: float(x) for name, x in content["accuracy"].items()}
            notes = [str(note) for note in content["notes"]]
            asked = None if bootstrap is None else Bootstrap(**bootstrap)
            adapt, batch = bool(content.get("adapt", False)), content.get("batch")
            check_batch(adapt, batch)
            loaded = cls(
                results, asked, skipped, accuracy=accuracy, notes=notes, adapt=adapt, batch=batch
            )
            loaded.lay_out()  # which refuses values that are none
            return loaded
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
        measured = {
            name: adapt_to_sets(one, self.adapt, self.batch)
            for name, one in self.calibrators.items()
        }
        data = FigureData(self.tests, measured, self.cal, self.results, **options)
        return draw_figure(kind, data)

    def __repr__(self) -> str:
        size = f"{count(self.methods, 'method')} on {count(self.datasets, 'test set')}"
        tests = ""
        if self.bootstrap is not None:
            tests = f", tested against {self.bootstrap.reference}"
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Comparison: {size}, {count(self.metrics, 'metric')}{tests}{skipped}>"


def _restore_result(record: Mapping[str, Any]) -> Result:
    """A row read from JSON: three names, then numbers."""
    row = Result(**restore_nan(record))
    are_names = all(isinstance(name, str) for name in row[:3])
    if not are_names or not all(type(number) in (int, float) for number in row[3:]):
        raise TypeError(f"a row must hold names and numbers, got {str(record)[:200]}")
    return row


def compare(
    cal: Any,
    tests: Mapping[str, Any],
    *,
    methods: MethodLikes | None = None,
    metrics: str | Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    bootstrap: Bootstrap | None = None,
    progress: Progress | bool | None = None,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    adapt: bool = False,
    batch: int | None = None,
    log: str | None = None,
) -> Comparison:
    """Fits methods on the calibration data and measures them on every test set.

    A data set is a path or (predictions, labels); one with shifted rows makes several test sets.
    `methods` are names, aliases or groups, or "all"; without any, the groups baseline, binary,
    paper and own. Of a group, those methods are compared whose inputs are in all data. Beside names
    there may be calibrators, fitted or not, and classes and functions that build one; a mapping
    gives each a name of its own. `metrics` are names, or "all". What draws at random is fitted once
    a seed. With a `Bootstrap`, values have intervals and paired tests. Test sets of another
    classifier, or with more than 1 % of the calibration rows, are refused unless `any_classifier`
    or `allow_overlap`. With `adapt`, each calibrator is adapted to every test set without its
    labels, or to each `batch` rows of it in their order; a note names the methods that cannot be
    adapted. `progress` is True for a bar, also in notebooks, or called with each step. `log` sends
    the results to a tracker, "mlflow" or "wandb".
    """
    check_batch(adapt, batch)
    check_tracker(log)
    fitted_on, on = load_data_set(cal, argument="cal"), load_test_sets(tests)
    known = CalibrationData.of_predictions(fitted_on[0])
    check_test_sets([known], on, any_classifier, allow_overlap)
    given = sort_given(methods)
    chosen, skipped = resolve_methods(given.names, fitted_on, on, given.has_objects)
    to_fit: list[str | Method] = [*chosen, *given.records]
    with follow(progress) as step:
        results, calibrators, notes = compare_methods(
            fitted_on, on, to_fit, metrics, seeds, bootstrap, step, given.fitted, adapt, batch
        )
    resolved = None
    if bootstrap is not None:
        reference = bootstrap.resolve(list(calibrators)).reference
        names = [*chosen, *(record.name for record in given.records), *given.fitted]
        resolved = replace(bootstrap.resolve(names), reference=reference)
    accuracy = measure_accuracies(on)
    comparison = Comparison(
        results, resolved, skipped, calibrators, fitted_on, on, accuracy, notes, adapt, batch
    )
    if log is not None:
        log_comparison(comparison, log)
    return comparison
