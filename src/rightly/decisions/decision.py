"""Thresholds for accepting predictions: by hand, with a guaranteed accuracy, or at least cost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, overload

import numpy as np

from rightly.checks import (
    Schema,
    check_confidence,
    check_fraction,
    check_groups,
    check_share,
    check_table,
    is_count,
    is_interval,
    is_number,
    is_share,
    is_table,
    is_text,
)
from rightly.decisions.costs import RESAMPLES, Amount, find_least_cost
from rightly.decisions.guarantee import exact_interval, find_threshold
from rightly.shapes import AnyArray

HOLDS_FOR = "holds for data like the calibration data"
# What voids a guarantee, beside a drift alarm.
ADAPTED = "adapted data"
Kind = Literal["manual", "guaranteed", "approximate", "least_cost"]


@dataclass(frozen=True)
class Decision:
    """When to accept a prediction, and what was measured and guaranteed of the accepted.

    A "guaranteed" threshold accepts at most `max_error` wrong predictions, with probability
    `confidence_level` over the samples, in data like these. An "approximate" one comes from
    cross-fitted confidence: `violation_rate` is how often it fails in simulated data sets. Where
    no threshold can be guaranteed, `threshold` is None; `reason` says why, and `needed` how many
    samples would do. `void` says why what was measured or guaranteed does not hold now.
    """

    threshold: float | None
    kind: Kind = "manual"
    n: int = 0  # samples that it was found and measured on
    coverage: float | None = None  # share of them that is accepted
    accuracy: float | None = None  # of the accepted
    accuracy_interval: tuple[float, float] | None = None  # exact, 95 % (Clopper, Pearson, 1934)
    max_error: float | None = None
    confidence_level: float | None = None
    error_bound: float | None = None  # exact upper bound of the error among the accepted
    violation_rate: float | None = None
    costs: Mapping[str, float] | None = None
    needed: int | None = None
    reason: str = ""
    void: str | None = None
    measured_on: str = ""

    @classmethod
    def at(
        cls, threshold: float, confidence: AnyArray, correct: AnyArray, *, measured_on: str = ""
    ) -> "Decision":
        """Accept from a threshold chosen by hand, measured on these samples.

        >>> decision = Decision.at(0.7, [0.9, 0.8, 0.6], [True, True, False])
        >>> round(decision.coverage, 3), decision.accuracy
        (0.667, 1.0)
        """
        c, a = check_confidence(confidence, correct)
        check_share("threshold", threshold)
        return cls(float(threshold), measured_on=measured_on, **_measure(threshold, c, a))

    @overload
    @classmethod
    def guarantee(
        cls,
        confidence: AnyArray,
        correct: AnyArray,
        *,
        accuracy: float,
        confidence_level: float = ...,
        groups: None = ...,
        simultaneous: bool = ...,
        measured_on: str = ...,
    ) -> "Decision": ...
    @overload
    @classmethod
    def guarantee(
        cls,
        confidence: AnyArray,
        correct: AnyArray,
        *,
        accuracy: float,
        confidence_level: float = ...,
        groups: AnyArray,
        simultaneous: bool = ...,
        measured_on: str = ...,
    ) -> "dict[Any, Decision]": ...
    @classmethod
    def guarantee(
        cls,
        confidence: AnyArray,
        correct: AnyArray,
        *,
        accuracy: float,
        confidence_level: float = 0.95,
        groups: AnyArray | None = None,
        simultaneous: bool = False,
        measured_on: str = "",
    ) -> "Decision | dict[Any, Decision]":
        """Accept from the lowest threshold at which `accuracy` is guaranteed (Learn then Test).

        With probability `confidence_level` over the samples, at least `accuracy` of what it accepts
        in data like these is correct. The samples must be held out of the fit. With `groups`, such
        as predicted classes, there is one decision per group, and the guarantee holds for each, or
        with `simultaneous` for all at once.

        >>> Decision.guarantee(np.linspace(0.5, 1, 149), [True] * 149, accuracy=0.98).accepted
        149
        >>> Decision.guarantee(np.linspace(0.5, 1, 100), [True] * 100, accuracy=0.98).reason
        'not with these 100 samples; about 149 would do'
        """
        c, a = check_confidence(confidence, correct)
        check_fraction("accuracy", accuracy)
        check_fraction("confidence_level", confidence_level)
        max_error = round(1 - accuracy, 12)  # 0.02 and not 0.020000000000000018
        level = float(confidence_level)

        def find(c: np.ndarray, a: np.ndarray, delta: float) -> Decision:
            found = find_threshold(c, a, max_error, delta)
            return cls(
                kind="guaranteed",
                max_error=max_error,
                confidence_level=level,
                measured_on=measured_on,
                **found._asdict(),
                **_measure(found.threshold, c, a),
            )

        if groups is None:
            if simultaneous:
                raise ValueError("simultaneous must come with groups: pass groups=, one per sample")
            return find(c, a, 1 - level)
        names, number = check_groups(groups, len(c))
        delta = (1 - level) / len(names) if simultaneous else 1 - level
        return {name: find(c[number == k], a[number == k], delta) for k, name in enumerate(names)}

    @classmethod
    def least_cost(
        cls,
        confidence: AnyArray,
        correct: AnyArray,
        *,
        error: Amount,
        review: Amount,
        gain: Amount = 0,
        resamples: int = RESAMPLES,
        seed: int = 0,
        measured_on: str = "",
    ) -> "Decision":
        """Accept from the threshold of least cost on these samples.

        An accepted prediction costs `error` if it is wrong and earns `gain` if it is correct; any
        other costs a `review`. `costs["per_1000"]` is corrected for optimism, and its 95 % interval
        `low` to `high` found, by bootstrap (Efron, 1983); `accept_all` is the cost without a
        threshold.

        >>> correct = [True, True, False]
        >>> Decision.least_cost([0.9, 0.8, 0.6], correct, error=10, review=1).threshold
        0.8
        """
        c, a = check_confidence(confidence, correct)
        found = find_least_cost(c, a, error, review, gain, resamples, seed)
        reason = "" if found.threshold is not None else "reviewing all costs least at these costs"
        return cls(
            found.threshold,
            "least_cost",
            costs=found.costs,
            reason=reason,
            measured_on=measured_on,
            **_measure(found.threshold, c, a),
        )

    @classmethod
    def from_dict(cls, values: Any, name: str = "decision") -> "Decision":
        """The decision that `to_dict` gave, checked."""
        _check(values, name)
        known = {key: value for key, value in values.items() if value is not None}
        for key in known.keys() & SHARES:
            known[key] = float(known[key])
        if "accuracy_interval" in known:
            low, high = known["accuracy_interval"]
            known["accuracy_interval"] = (float(low), float(high))
        if "costs" in known:
            known["costs"] = {key: float(amount) for key, amount in known["costs"].items()}
        return cls(**{"threshold": None} | known)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = asdict(self)
        if self.accuracy_interval is not None:
            values["accuracy_interval"] = list(self.accuracy_interval)
        return values

    @property
    def accepted(self) -> int:
        """Number of samples that it accepts of those it was measured on."""
        return round((self.coverage or 0.0) * self.n)

    @property
    def has_guarantee(self) -> bool:
        """Whether it has a guaranteed threshold, void or not."""
        return self.kind == "guaranteed" and self.threshold is not None

    @property
    def is_guaranteed(self) -> bool:
        """Whether it has a threshold whose guarantee is not void."""
        return self.has_guarantee and self.void is None

    def voided(self, reason: str) -> "Decision":
        """The same decision, with why what was guaranteed does not hold."""
        return replace(self, void=reason)

    def describe(self) -> str:
        """One line: coverage, and what is guaranteed of the accepted."""
        if self.threshold is None:
            where = f" ({self.measured_on})" if self.measured_on else ""
            return f"no threshold: {self.reason}{where}"
        if self.coverage is None:
            text = f"accepts confidence from {self.threshold:.4f}"
        else:
            text = f"of 1,000 samples about {1000 * self.coverage:,.0f} accepted"
        if self.void is not None:
            where = "" if self.coverage is None else " on the calibration data"
            void = describe_void(self.void) if self.has_guarantee else self.void
            return f"{text}{where}; {void}"
        if self.costs is not None:
            low, cost, high = (self.costs[name] for name in ("low", "per_1000", "high"))
            return f"{text}, at a cost of {cost:,.4g} ({low:,.4g} to {high:,.4g})"
        if self.max_error is None:
            return text
        wrong = format_share(self.max_error)
        if self.kind == "approximate":
            rate = "not guaranteed"
            if self.violation_rate is not None:
                share = format_share(self.violation_rate)
                rate = f"approximate: violation rate {share} in simulated data sets"
            return f"{text}, about {wrong} of them wrong or fewer ({rate})"
        assert self.confidence_level is not None
        level = format_share(self.confidence_level)
        return f"{text}, at most {wrong} of them wrong (guaranteed, confidence level {level})"


def drift_alarm(names: str) -> str:
    """The reason of a void guarantee after drift alarms of these names."""
    return f"drift alarm ({names})"


def describe_void(reason: str) -> str:
    """That a guarantee is void, in the words that every place shows."""
    return f"guarantee void: {reason}"


def describe_set_guarantee(sets: Mapping[str, Any], class_count: int) -> str:
    """Coverage that prediction sets guarantee, from `ConformalSets.describe`."""
    text = (
        f"Prediction sets ({sets['score']}) hold the true class of "
        f"{format_share(sets['coverage'])} of images like the {sets['samples']:,} held out"
    )
    if not sets["class_conditional"]:
        interval = sets.get("coverage_interval")
        if interval is None:
            return text
        low, high = (f"{100 * end:.1f} %" for end in interval)
        return f"{text}: given these, of {low} to {high} with probability 0.95"
    marginal = sets["marginal_classes"]
    text += f", in each of {class_count - marginal} classes"
    if marginal:
        text += f" ({marginal} more had too few images and take the threshold of all)"
    return text


def format_share(share: float) -> str:
    """A share in per cent, as short as it is exact: 2 %, 0.5 %."""
    return f"{100 * share:.4g} %"


def _measure(threshold: float | None, c: np.ndarray, a: np.ndarray) -> dict[str, Any]:
    """Coverage and accuracy of the samples from a threshold upwards."""
    if threshold is None:
        return {"n": len(c), "coverage": 0.0}
    accepted = c >= threshold
    n, right = int(accepted.sum()), int(a[accepted].sum())
    values: dict[str, Any] = {"n": len(c), "coverage": n / len(c)}
    if n:
        values |= {"accuracy": right / n, "accuracy_interval": exact_interval(right, n)}
    return values


SHARES = frozenset(
    ("threshold", "coverage", "accuracy", "max_error", "confidence_level", "error_bound")
) | {"violation_rate"}
# Values that a decision must have where it has a threshold, by kind.
MEASURED = ("coverage", "n")
REQUIRED = {
    "manual": (),
    "guaranteed": (*MEASURED, "max_error", "confidence_level", "error_bound"),
    "approximate": (*MEASURED, "max_error", "confidence_level"),
    "least_cost": (*MEASURED, "costs"),
}


def _is_kind(value: object) -> bool:
    return isinstance(value, str) and value in REQUIRED


def _are_costs(value: Any) -> bool:
    names = {"error", "review", "gain", "per_1000", "low", "high", "accept_all"}
    return is_table(value) and set(value) == names and all(map(is_number, value.values()))


ENTRIES: Schema = {
    "kind": (f"one of {', '.join(REQUIRED)}", _is_kind),
    "n": ("a number of samples", is_count),
    "needed": ("a number of samples", is_count),
    "accuracy_interval": ("two numbers from 0 to 1 in order", is_interval),
    "costs": ("error, review, gain, per_1000, low, high and accept_all as numbers", _are_costs),
    **{name: ("text", is_text) for name in ("reason", "void", "measured_on")},
    **{name: ("a number from 0 to 1", is_share) for name in sorted(SHARES)},
}
assert set(ENTRIES) == {field.name for field in fields(Decision)}


def _check(values: Any, name: str) -> None:
    """Refuse values that are no decision."""
    check_table(values, {}, name)
    given = {key: value for key, value in values.items() if value is not None}
    check_table(given, ENTRIES, name, only=True)
    kind, is_made = values.get("kind"), values.get("threshold") is not None
    required = REQUIRED[kind] if is_made and kind else ("kind", "reason")
    if missing := [key for key in required if values.get(key) is None]:
        raise ValueError(f"{name} must have {', '.join(missing)} where its kind is {kind}")
    if values.get("accuracy") is not None and values.get("accuracy_interval") is None:
        raise ValueError(f"{name} must have accuracy_interval where it has an accuracy")
    if is_made and kind == "guaranteed" and values["error_bound"] > values["max_error"]:
        raise ValueError(
            f"{name}.error_bound must be at most max_error, {values['max_error']}, where it is "
            f"guaranteed, got {values['error_bound']}"
        )
