"""A calibrator's decision on test sets: what it accepts, what was promised and what was kept."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rightly.decisions.costs import measure_cost
from rightly.decisions.stored import HOLDS_FOR, Decision, format_share
from rightly.decisions.thresholds import OperatingPoint, operating_point
from rightly.evaluation.adapted_sets import MeasuredCalibrator
from rightly.files import replace_nan
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels


class Cost(NamedTuple):
    """Of 1,000 images, with its approximate 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class DecisionOutcome:
    """A stored decision on one test set."""

    decision: Decision
    point: OperatingPoint
    is_adapted: bool = False  # to the test set: then nothing is promised
    expected_accuracy: float | None = None  # of the accepted, then: their mean confidence
    cost: Cost | None = None

    @property
    def verdict(self) -> str | None:
        """Whether a promise was kept here; None where none was made."""
        if not self.decision.is_guaranteed or self.is_adapted or not self.point.accepted:
            return None
        assert self.decision.max_error is not None
        promised = 1 - self.decision.max_error
        if self.point.accuracy >= promised:
            return "kept"
        is_refuted = self.point.accuracy_high < promised
        return "not kept" if is_refuted else "not kept, by no more than chance"

    def describe(self) -> list[str]:
        """Lines for people."""
        point, decision = self.point, self.decision
        text = f"accepted from confidence {point.threshold:.4f} on: {point.coverage:.1%}"
        if not point.accepted:
            return [f"{text}."]
        text += (
            f", {point.accuracy:.2%} of them right (95 % interval {point.accuracy_low:.2%} to "
            f"{point.accuracy_high:.2%})"
        )
        if self.expected_accuracy is not None:
            text += f", {self.expected_accuracy:.2%} expected; after adapting nothing is promised"
        elif self.verdict is not None:
            assert decision.max_error is not None and decision.assurance is not None
            text += (
                f". Promised at least {format_share(1 - decision.max_error)}, "
                f"{format_share(decision.assurance)} sure: {self.verdict}; the promise {HOLDS_FOR}"
            )
        elif decision.kind == "approximate":
            assert decision.max_error is not None
            text += f"; {format_share(1 - decision.max_error)} were aimed at, and not guaranteed"
        lines = [f"{text}."]
        if self.cost is not None:
            cost = f"{self.cost.value:,.4g} ({self.cost.low:,.4g} to {self.cost.high:,.4g})"
            lines.append(f"1,000 images cost {cost} there.")
        return lines

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        decision = self.decision
        record: dict[str, Any] = replace_nan(
            {
                "kind": decision.kind,
                **asdict(self.point),
                "max_error": decision.max_error,
                "assurance": decision.assurance,
                "is_guaranteed": decision.is_guaranteed and not self.is_adapted,
                "verdict": self.verdict,
                "expected_accuracy": self.expected_accuracy,
                "cost": None if self.cost is None else self.cost._asdict(),
            }
        )
        return record


def apply_decision(
    decision: Decision | None,
    calibrator: MeasuredCalibrator,
    predictions: Predictions,
    labels: Labels,
    costs: Mapping[str, float] | None = None,
    is_adapted: bool = False,
) -> DecisionOutcome | None:
    """What a stored decision comes to on one test set; None without a threshold.

    Without `costs`, those that the decision was made by.
    """
    if decision is None or decision.threshold is None:
        return None
    confidence = calibrator.confidence(predictions).double().cpu().numpy()
    correct = (calibrator.classes(predictions) == labels).cpu().numpy()
    point = operating_point(confidence, correct, decision.threshold)
    is_adapted = is_adapted or decision.is_adapted
    expected = None
    if is_adapted and point.accepted:
        expected = float(confidence[confidence >= decision.threshold].mean())
    if costs is None and decision.costs is not None:
        costs = {name: decision.costs[name] for name in ("error", "review", "gain")}
    cost = None
    if costs is not None:
        amounts: dict[str, Any] = dict(costs)
        cost = Cost(*measure_cost(confidence, correct, decision.threshold, **amounts))
    return DecisionOutcome(decision, point, is_adapted, expected, cost)
