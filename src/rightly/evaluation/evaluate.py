"""One calibrator on some test sets: every metric before and after, its decision and its sets."""

import csv
import math
import operator
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rightly.calibrators import Calibrator, check_calibrator, load_calibrator
from rightly.checks import check_confidence, check_file, refuse
from rightly.decisions import exact_interval
from rightly.decisions.decision import ADAPTED
from rightly.decisions.outcome import DecisionOutcome, apply_decision
from rightly.evaluation.data_sets import TestSets, load_test_sets, measure_accuracies
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import (
    BeforeAfter,
    check_adapt,
    compare_outcomes,
    compute_outcomes,
    resolve_metrics,
)
from rightly.evaluation.results import (
    FilePath,
    Result,
    ResultTable,
    count,
    describe_class_changes,
    resolve_resamples,
)
from rightly.evaluation.set_quality import SetQuality, describe_set_quality, measure_sets
from rightly.metrics import METRICS, Outcomes, measure_all
from rightly.metrics.bootstrap import replicate_metrics
from rightly.resampling import draw_resamples, interval
from rightly.shapes import AnyArray

if TYPE_CHECKING:
    from rightly.reporting.layout import Layout


class Estimate(NamedTuple):
    """A value and the ends of its 95 % interval; nan where there are none."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(ResultTable[Result]):
    """Results of the classifier's own confidence, of the calibrated one, and their change."""

    kind = "evaluation"

    sets: Mapping[str, BeforeAfter]
    calibrator: Calibrator
    tests: TestSets
    accuracy: Mapping[str, float]  # by test set
    resamples: int | None = None  # of intervals and tests, where there are any
    seed: int = 0
    adapt: bool | int = False  # to each test set without its labels, or to batches of so many rows
    set_quality: Mapping[str, SetQuality] = field(default_factory=dict)  # of prediction sets
    decisions: Mapping[str, DecisionOutcome] = field(default_factory=dict)  # by test set
    missed: Sequence[str] = ()  # of the requirements

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
            "resamples": self.resamples,
            "seed": self.seed,
            "adapt": self.adapt,
            "prediction_sets": describe_set_quality(self.calibrator, self.set_quality),
            "decision": None if decision is None else decision.to_dict(),
            "decisions": {name: one.to_dict() for name, one in self.decisions.items()},
            "missed": list(self.missed),
        }

    @property
    def class_changes(self) -> list[str]:
        """A sentence about accuracy before and after, where the calibrator changes classes."""
        own = measure_accuracies(self.tests)
        pairs = {name: (own[name], after) for name, after in self.accuracy.items()}
        return describe_class_changes({self.calibrator.title: pairs})

    @property
    def decision_notes(self) -> list[str]:
        """What the decision accepts on each test set, or why there is no threshold."""
        decision, outcomes = self.calibrator.decision, self.decisions.items()
        if decision is not None and decision.threshold is None:
            return [f"No threshold: {decision.reason}."]
        return [f"On {name}: {line}" for name, one in outcomes for line in one.describe()]

    def lay_out(self) -> "Layout":
        from rightly.reporting.layout import lay_out_evaluation

        return lay_out_evaluation(self)

    def plot(self, kind: str = "reliability", **options: Any) -> Any:
        """Draws one of `rightly.reporting.figures.FIGURES`, with the uncalibrated confidence.

        `options` are fields of FigureData: metric, bins, cal, method, resamples, seed.
        """
        from rightly.reporting.figures.kinds import FigureData, draw_figure, include_uncalibrated

        own = {self.calibrator.title: self.calibrator}
        calibrators = include_uncalibrated(own)
        after = [
            row for one in self.sets.values() for row in (*one.before.values(), *one.after.values())
        ]
        data = FigureData(self.tests, calibrators, results=after, adapt=self.adapt, **options)
        return draw_figure(kind, data)

    def __repr__(self) -> str:
        metrics = next(iter(self.sets.values())).after
        size = f"{count(self.sets, 'test set')}, {count(metrics, 'metric')}"
        tests = "" if self.resamples is None else ", with intervals"
        return f"<Evaluation: {self.calibrator.title} on {size}{tests}>"


def evaluate(
    calibrator: FilePath | Calibrator,
    tests: Mapping[str, Any],
    *,
    metrics: str | Sequence[str] = "all",
    intervals: bool = True,
    resamples: int | None = None,
    seed: int = 0,
    adapt: bool | int = False,
    costs: Mapping[str, float] | None = None,
    require: Sequence[str] = (),
    any_classifier: bool = False,
    allow_overlap: bool = False,
) -> Evaluation:
    """Measure a fitted calibrator, or a saved one by its path, before and after on test sets.

    A data set is a path or (predictions, labels); one with shifted rows makes several test sets.

    Args:
        metrics: Names, or "all".
        intervals: Report 95 % intervals of values, and paired tests of changes.
        resamples: Bootstrap resamples of each test set; None for 1000.
        adapt: True adapts the calibrator to every test set without its labels, a number to each
            batch of so many rows in their order.
        costs: Of error, review and gain, to say what the calibrator's decision costs; None for
            those that it was made by.
        require: What must hold on every test set, such as "ece<=0.03" or
            "accuracy_accepted.low>=0.97"; `missed` of the result names what does not.
        any_classifier: Take test sets of another classifier.
        allow_overlap: Take test sets with more than 1 % of the calibration rows.
    """
    check_adapt(adapt)
    requirements = [Requirement.parse(text) for text in require]
    names = resolve_metrics(metrics)
    drawn = resolve_resamples(resamples, 2) if intervals else None
    fitted = open_calibrator(calibrator)
    loaded = load_test_sets(tests, fitted.view_names)
    check_test_sets([CalibrationData.of_calibrator(fitted)], loaded, any_classifier, allow_overlap)
    seen = {name: (fitted.select_views(test), labels) for name, (test, labels) in loaded.items()}
    decision = fitted.decision
    if decision is not None and adapt is not False:
        decision = decision.voided(ADAPTED)
    sets, accuracy, quality, decisions = {}, {}, {}, {}
    for name, (test, labels) in seen.items():
        before = compute_outcomes(None, test, labels, names)
        after = compute_outcomes(fitted, test, labels, names, adapt)
        sets[name] = compare_outcomes(fitted.title, name, before, after, names, drawn, seed)
        accuracy[name] = float(after.correct.mean())
        if decision is not None and decision.threshold is not None:
            confidence = after.confidence.astype(np.float64)
            decisions[name] = apply_decision(decision, confidence, after.correct, costs)
        if fitted.sets is not None:
            quality[name] = measure_sets(fitted, test, labels, adapt)
    missed = _find_missed(requirements, sets, accuracy, decisions, quality, seen)
    return Evaluation(sets, fitted, seen, accuracy, drawn, seed, adapt, quality, decisions, missed)


def open_calibrator(calibrator: Any) -> Calibrator:
    """A calibrator that is fitted or saved, with a place for threshold and record."""
    if isinstance(calibrator, str | os.PathLike):
        return load_calibrator(calibrator)
    return check_calibrator(calibrator)


# What can be required beside metrics, and what measuring it takes.
BESIDE_METRICS = {
    "accuracy": "",
    "coverage": "a threshold",
    "accuracy_accepted": "a threshold",
    "cost": "a threshold and costs",
    "set_coverage": "prediction sets (fit with coverage) of a calibrator that is not adapted",
    "set_size": "prediction sets (fit with coverage)",
}
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
PATTERN = re.compile(r"\s*(\w+)(?:\.(\w+))?\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Requirement:
    """An estimate, or an end of its interval, and the limit that it must keep."""

    name: str
    end: str  # "value", "low" or "high"
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """From text such as "ece.high<=0.03"."""
        found = PATTERN.fullmatch(text)
        end = (found[2] or "value") if found else ""
        try:
            limit = float(found[4]) if found else math.nan
        except ValueError:
            limit = math.nan
        known = ", ".join([*BESIDE_METRICS, *METRICS])
        if found is None or end not in Estimate._fields or not math.isfinite(limit):
            raise ValueError(
                f"require must be like 'ece<=0.03' or 'accuracy_accepted.low>=0.97', got {text!r}: "
                f"a name, .low or .high for an end of its 95 % interval, one of "
                f"{' '.join(COMPARISONS)}, and a number. Names: {known}"
            )
        name = found[1]
        if name not in BESIDE_METRICS and name not in METRICS:
            raise ValueError(
                f"require must name something that is measured, got {name!r}: one of {known}"
            )
        return cls(name, end, found[3], limit)

    def check(self, estimates: Mapping[str, Estimate], dataset: str) -> str | None:
        """What is missed on a test set, with value and limit; None where it is met."""
        if self.name not in estimates:
            needs = BESIDE_METRICS.get(self.name, f"{self.name} among the metrics")
            raise ValueError(f"require needs {needs} to measure {self.name}, but there is none")
        value = getattr(estimates[self.name], self.end)
        title = self.name if self.end == "value" else f"{self.name}.{self.end}"
        if math.isnan(value) and self.end != "value" and not math.isnan(estimates[self.name].value):
            raise ValueError(
                f"require needs intervals for {title}, but there are none: pass intervals=True, "
                "or require the value itself"
            )
        if COMPARISONS[self.comparison](value, self.limit):  # which nan never is
            return None
        shown = "not available" if math.isnan(value) else f"{value:.6g}"
        return f"{title} on {dataset} is {shown}, required {self.comparison} {self.limit:g}"


def _find_missed(
    requirements: Sequence[Requirement],
    sets: Mapping[str, BeforeAfter],
    accuracy: Mapping[str, float],
    decisions: Mapping[str, DecisionOutcome],
    quality: Mapping[str, SetQuality],
    tests: TestSets,
) -> list[str]:
    """What is missed of the requirements, which hold for every test set."""
    missed = []
    for name in sets if requirements else ():
        n = len(tests[name][0])
        estimates = {
            key: Estimate(row.value, row.low, row.high) for key, row in sets[name].after.items()
        }
        right = round(accuracy[name] * n)
        estimates["accuracy"] = Estimate(accuracy[name], *exact_interval(right, n))
        if name in decisions:
            estimates |= _estimate_decision(decisions[name], n)
        if name in quality:
            estimates |= _estimate_sets(quality[name])
        missed += [text for one in requirements if (text := one.check(estimates, name))]
    return missed


def _estimate_decision(outcome: DecisionOutcome, n: int) -> dict[str, Estimate]:
    observed = outcome.observed
    share = math.nan if observed.accuracy is None else observed.accuracy
    ends = exact_interval(observed.accepted, n)
    estimates = {
        "accuracy_accepted": Estimate(share, *(observed.accuracy_interval or ())),
        "coverage": Estimate(observed.accepted / n, *ends),
    }
    return estimates if outcome.cost is None else {**estimates, "cost": Estimate(*outcome.cost)}


def _estimate_sets(quality: SetQuality) -> dict[str, Estimate]:
    estimates = {"set_size": Estimate(quality.mean_size)}
    if quality.coverage is not None:
        ends = (quality.coverage_low or 0.0, quality.coverage_high or 0.0)
        estimates["set_coverage"] = Estimate(quality.coverage, *ends)
    return estimates


PAIR_COLUMNS = ("confidence", "correct")
TRUTH = {"1": True, "true": True, "0": False, "false": False}


def read_pairs(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The columns confidence and correct of a .csv file; others are not read."""
    check_file(path, "table")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a table with commas, in UTF-8: {error}") from error
    names = [name.strip() for name in header]
    missing = [name for name in PAIR_COLUMNS if name not in names]
    if missing:
        raise ValueError(
            f"{path} must have the columns confidence and correct, but {' and '.join(missing)} "
            f"is missing: it has {names[:8]}; logits and probabilities need a calibrator, see "
            "rightly fit"
        )
    places = [names.index(name) for name in PAIR_COLUMNS]
    confidence, correct = [], []
    for number, row in enumerate(rows, start=2):
        try:
            own, truth = (row[place].strip() for place in places)
            confidence.append(float(own))
            correct.append(TRUTH[truth.lower()])
        except (IndexError, KeyError, ValueError):
            raise ValueError(
                f"{path}, row {number}: confidence must be a number from 0 to 1 and correct one of "
                f"1, 0, true, false, got {row[:8]}"
            ) from None
    with refuse(ValueError, what=path):
        return check_confidence(confidence, correct)


def evaluate_pairs(
    confidence: AnyArray,
    correct: AnyArray,
    *,
    metrics: str | Sequence[str] = "all",
    intervals: bool = True,
    resamples: int | None = None,
    seed: int = 0,
    dataset: str = "",
) -> list[Result]:
    """Metrics of (confidence, correct) from elsewhere, by default all that need no more."""
    c, a = check_confidence(confidence, correct)
    values = measure_all(c, a, None if metrics == "all" else metrics)
    results = [Result("", dataset, name, value, seed) for name, value in values.items()]
    if not intervals:
        return results
    drawn = draw_resamples(len(c), resolve_resamples(resamples, 1), seed)
    replicates = replicate_metrics(Outcomes(c, a), list(values), drawn)
    ends = {
        name: interval(value, replicates[name], METRICS[name].range)
        for name, value in values.items()
    }
    return [row._replace(low=ends[row.metric].low, high=ends[row.metric].high) for row in results]
