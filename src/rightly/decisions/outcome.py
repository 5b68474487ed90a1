"""A decision on test samples: what it accepts there, and whether its guarantee is met."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rightly.decisions.costs import measure_cost
from rightly.decisions.decision import HOLDS_FOR, Decision, describe_void, format_share
from rightly.shapes import Confidence, Correct


class Cost(NamedTuple):
    """Cost of 1,000 samples, with its approximate 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class DecisionOutcome:
    """A decision on one test set."""

    decision: Decision
    observed: Decision  # its threshold, measured on the test set
    expected_accuracy: float | None = None  # of the accepted, where it is void: mean confidence
    cost: Cost | None = None

    @property
    def verdict(self) -> str | None:
        """Whether the guarantee is met here; None where there is none, or nothing is accepted."""
        accuracy, interval = self.observed.accuracy, self.observed.accuracy_interval
        if not self.decision.is_guaranteed or accuracy is None or interval is None:
            return None
        assert self.decision.max_error is not None
        least = 1 - self.decision.max_error
        if accuracy >= least:
            return "met"
        return "not met" if interval[1] < least else "not met (within sampling error)"

    def describe(self) -> list[str]:
        """Lines for people."""
        observed = self.observed
        text = f"accepted from confidence {observed.threshold:.4f}: {observed.coverage:.1%}"
        if observed.accuracy is None or observed.accuracy_interval is None:
            return [f"{text}{self._describe_guarantee()}."]
        low, high = observed.accuracy_interval
        text += f", {observed.accuracy:.2%} of them correct (95 % interval {low:.2%} to {high:.2%})"
        lines = [f"{text}{self._describe_guarantee()}."]
        if self.cost is not None:
            cost = f"{self.cost.value:,.4g} ({self.cost.low:,.4g} to {self.cost.high:,.4g})"
            lines.append(f"1,000 samples cost {cost} there.")
        return lines

    def _describe_guarantee(self) -> str:
        decision, text = self.decision, ""
        if self.expected_accuracy is not None:
            text = f", expected accuracy {self.expected_accuracy:.2%}"
        if decision.void is not None:
            void = describe_void(decision.void) if decision.has_guarantee else decision.void
            return f"{text}; {void}"
        if decision.max_error is None:
            return text
        least = format_share(1 - decision.max_error)
        if decision.kind == "approximate":
            return f"{text}; target {least}, approximate and not guaranteed"
        assert decision.confidence_level is not None
        level = format_share(decision.confidence_level)
        verdict = self.verdict or "nothing accepted"
        return (
            f"{text}. Guaranteed at least {least}, confidence level {level}: {verdict}; the "
            f"guarantee {HOLDS_FOR}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        decision, observed = self.decision, self.observed.to_dict()
        names = ("threshold", "n", "coverage", "accuracy", "accuracy_interval")
        return {
            "kind": decision.kind,
            **{name: observed[name] for name in names},
            "accepted": self.observed.accepted,
            "max_error": decision.max_error,
            "confidence_level": decision.confidence_level,
            "is_guaranteed": decision.is_guaranteed,
            "void": decision.void,
            "verdict": self.verdict,
            "expected_accuracy": self.expected_accuracy,
            "cost": None if self.cost is None else self.cost._asdict(),
        }


def apply_decision(
    decision: Decision,
    confidence: Confidence,
    correct: Correct,
    costs: Mapping[str, float] | None = None,
) -> DecisionOutcome:
    """A decision with a threshold, on test samples.

    Without `costs`, those that the decision was made by.
    """
    assert decision.threshold is not None
    observed = Decision.at(decision.threshold, confidence, correct)
    expected = None
    if decision.void is not None and observed.accepted:
        expected = float(confidence[confidence >= decision.threshold].mean())
    if costs is None and decision.costs is not None:
        costs = {name: decision.costs[name] for name in ("error", "review", "gain")}
    cost = None
    if costs is not None:
        amounts: dict[str, Any] = dict(costs)
        cost = Cost(*measure_cost(confidence, correct, decision.threshold, **amounts))
    return DecisionOutcome(decision, observed, expected, cost)
