"""One fitted calibrator on some test sets: every metric before and after."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rightly.calibrators import AnyCalibrator, FittedCalibrator, as_fitted, load_calibrator
from rightly.decisions import exact_interval
from rightly.decisions.decision import ADAPTED
from rightly.decisions.outcome import DecisionOutcome, apply_decision
from rightly.evaluation.adapted_sets import adapt_to_sets, check_batch
from rightly.evaluation.data_sets import TestSets, load_test_sets, measure_accuracies
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import BeforeAfter, measure_before_and_after
from rightly.evaluation.requirements import Measured
from rightly.evaluation.results import RESAMPLES, Bootstrap, Result, describe_class_changes
from rightly.evaluation.set_quality import SetQuality, describe_set_quality, measure_all_sets
from rightly.reporting.formatting import (
    describe_adapting,
    describe_interval,
    format_percent,
    format_units,
)
from rightly.reporting.layout import Layout, lay_out_evaluation
from rightly.reporting.result_table import FilePath, ResultTable, count, describe_bootstrap
from rightly.reporting.set_notes import describe_sets


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(ResultTable[Result]):
    """Results of the classifier's own confidence, of the calibrated one, and their change."""

    kind = "evaluation"

    sets: Mapping[str, BeforeAfter]
    calibrator: FittedCalibrator
    tests: TestSets
    accuracy: Mapping[str, float]  # by test set
    bootstrap: Bootstrap | None = None
    adapt: bool = False  # to each test set, without its labels
    batch: int | None = None  # the rows of a batch, or the whole test set
    set_quality: Mapping[str, SetQuality] = field(default_factory=dict)  # of prediction sets
    decisions: Mapping[str, DecisionOutcome] = field(default_factory=dict)  # by test set

    @property
    def rows(self) -> Sequence[Result]:
        return [
            result for one in self.sets.values() for results in one for result in results.values()
        ]

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.rows]

    def describe(self) -> dict[str, Any]:
        samples = {name: len(test) for name, (test, _) in self.tests.items()}
        decision = self.calibrator.decision
        return {
            "calibrator": self.calibrator.title,
            "samples": samples,
            "accuracy": dict(self.accuracy),
            **describe_bootstrap(self.bootstrap),
            "adapt": self.adapt,
            "batch": self.batch,
            "prediction_sets": describe_set_quality(self.calibrator, self.set_quality),
            "decision": None if decision is None else decision.to_dict(),
            "decisions": {name: one.to_dict() for name, one in self.decisions.items()},
        }

    @property
    def class_changes(self) -> list[str]:
        """A sentence about accuracy before and after, where the calibrator changes classes."""
        own = measure_accuracies(self.tests)
        pairs = {name: (own[name], after) for name, after in self.accuracy.items()}
        return describe_class_changes({self.calibrator.title: pairs})

    def measured(self) -> dict[str, dict[str, Measured]]:
        """What can be required of each test set, by name: see `rightly.evaluation.requirements`."""
        sets = {}
        for name, one in self.sets.items():
            values = {key: Measured(row.value, row.low, row.high) for key, row in one.after.items()}
            n = len(self.tests[name][0])
            accuracy = self.accuracy[name]
            values["accuracy"] = Measured(accuracy, *exact_interval(round(accuracy * n), n))
            if name in self.decisions:
                observed, cost = self.decisions[name].observed, self.decisions[name].cost
                share = math.nan if observed.accuracy is None else observed.accuracy
                values["accuracy_accepted"] = Measured(share, *(observed.accuracy_interval or ()))
                ends = exact_interval(observed.accepted, n)
                values["coverage"] = Measured(observed.accepted / n, *ends)
                values |= {} if cost is None else {"cost": Measured(*cost)}
            if name in self.set_quality:
                quality = self.set_quality[name]
                values["set_size"] = Measured(quality.mean_size)
                if quality.coverage is not None:
                    ends = (quality.coverage_low or 0.0, quality.coverage_high or 0.0)
                    values["set_coverage"] = Measured(quality.coverage, *ends)
            sets[name] = values
        return sets

    def lay_out(self) -> Layout:
        metrics = list(next(iter(self.sets.values())).after)
        notes = [
            f"Values {format_units(metrics)}; ↓ lower is better, ↑ higher is better; binned errors "
            "have 25 bins."
        ]
        if self.bootstrap is not None:
            notes.append(
                f"{describe_interval()} {self.bootstrap.resamples} resamples, seed "
                f"{self.bootstrap.seed}; changes are paired, each tested alone at 5 %."
            )
        notes += [*describe_adapting(self.adapt, self.batch), *self.class_changes]
        notes += describe_sets(self.calibrator, self.set_quality)
        decision = self.calibrator.decision
        if decision is not None and decision.threshold is None:
            notes.append(f"No threshold: {decision.reason}.")
        notes += [
            f"On {name}: {line}" for name, one in self.decisions.items() for line in one.describe()
        ]
        sets = {
            f"{self.calibrator.title} on {name}: {count(len(self.tests[name][0]), 'sample')}, "
            f"accuracy {format_percent(self.accuracy[name])} %": one
            for name, one in self.sets.items()
        }
        return lay_out_evaluation(sets, notes)

    def plot(self, kind: str = "reliability", **options: Any) -> Any:
        """Draws one of `rightly.reporting.figures.FIGURES`, with the uncalibrated confidence.

        `options` are fields of FigureData: metric, bins, cal, method, resamples, seed.
        """
        from rightly.reporting.figures.kinds import FigureData, draw_figure, include_uncalibrated

        measured = adapt_to_sets(self.calibrator, self.adapt, self.batch)
        calibrators = include_uncalibrated({measured.title: measured}, self.tests)
        after = [
            row for one in self.sets.values() for row in (*one.before.values(), *one.after.values())
        ]
        data = FigureData(self.tests, calibrators, results=after, **options)
        return draw_figure(kind, data)

    def __repr__(self) -> str:
        metrics = next(iter(self.sets.values())).after
        size = f"{count(self.sets, 'test set')}, {count(metrics, 'metric')}"
        tests = "" if self.bootstrap is None else ", with intervals"
        return f"<Evaluation: {self.calibrator.title} on {size}{tests}>"


def evaluate(
    calibrator: FilePath | AnyCalibrator,
    tests: Mapping[str, Any],
    *,
    metrics: str | Sequence[str] | None = None,
    bootstrap: Bootstrap | None = None,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    adapt: bool = False,
    batch: int | None = None,
    costs: Mapping[str, float] | None = None,
) -> Evaluation:
    """Measures a fitted calibrator, or a saved one by its path, before and after on test sets.

    A data set is a path or (predictions, labels); one with shifted rows makes several test sets.
    Without `metrics`, all. With a `Bootstrap`, values have intervals and changes paired tests.
    Test sets of another classifier, or with more than 1 % of the rows that `rightly.fit` fitted
    on, are refused unless `any_classifier` or `allow_overlap`. With `adapt`, the calibrator is
    adapted to every test set without its labels, or to each `batch` rows of it in their order.
    Where the calibrator has a threshold, what that accepts is measured too, and its cost by `costs`
    of error, review and gain, or by those of its decision.
    """
    check_batch(adapt, batch)
    fitted = open_calibrator(calibrator)
    loaded = load_test_sets(tests, fitted.view_names)
    check_test_sets([CalibrationData.of_calibrator(fitted)], loaded, any_classifier, allow_overlap)
    return evaluate_sets(fitted, loaded, metrics, bootstrap, adapt, batch, costs)


def evaluate_sets(
    fitted: FittedCalibrator,
    tests: TestSets,
    metrics: str | Sequence[str] | None = None,
    bootstrap: Bootstrap | None = None,
    adapt: bool = False,
    batch: int | None = None,
    costs: Mapping[str, float] | None = None,
) -> Evaluation:
    """The same for test sets that are loaded."""
    selected = {
        name: (fitted.select_views(predictions), labels)
        for name, (predictions, labels) in tests.items()
    }
    sets, accuracy, decisions = {}, {}, {}
    decision = fitted.decision
    if decision is not None and adapt:
        decision = decision.voided(ADAPTED)
    measured = adapt_to_sets(fitted, adapt, batch)
    for name, (predictions, labels) in selected.items():
        sets[name] = measure_before_and_after(
            measured, name, predictions, labels, metrics, bootstrap
        )
        accuracy[name] = float((fitted.classes(predictions) == labels).double().mean())
        if decision is not None and decision.threshold is not None:
            confidence = measured.confidence(predictions).double().cpu().numpy()
            correct = (measured.classes(predictions) == labels).cpu().numpy()
            decisions[name] = apply_decision(decision, confidence, correct, costs)
    resolved = None
    if bootstrap is not None:
        resolved = Bootstrap(bootstrap.resamples or RESAMPLES, bootstrap.seed)
    quality = measure_all_sets(fitted, measured, selected)
    return Evaluation(sets, fitted, selected, accuracy, resolved, adapt, batch, quality, decisions)


def open_calibrator(calibrator: Any) -> FittedCalibrator:
    """A calibrator that is fitted or saved, with a place for decision and record."""
    if isinstance(calibrator, str | os.PathLike):
        return load_calibrator(calibrator)
    return as_fitted(calibrator)
