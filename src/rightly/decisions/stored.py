"""The decision that a calibrator carries: when to accept, and what was promised of that."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from rightly.predictions.stored_decision import check_decision

HOLDS_FOR = "holds for data like the calibration data"
NOT_COVERED = "not covered: adapted to other data, for which nothing was promised"


@dataclass(frozen=True)
class Decision:
    """A threshold, what it was chosen by, and what was measured at it when it was.

    `kind` is "guaranteed" (at most `max_error` of the accepted are wrong, with probability
    `assurance`), "approximate" (meant so, but cross-fitted: `broken` is how often that fails in a
    simulation), "least_cost", or "chosen" by hand. Where a promise could not be made, there is no
    threshold; `reason` says why, `needed` how many samples would do.
    """

    threshold: float | None
    kind: str
    samples: int = 0  # that it was chosen or measured on
    accepted: int = 0
    coverage: float | None = None
    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    measured_on: str = ""
    max_error: float | None = None
    assurance: float | None = None
    error: float | None = None
    error_high: float | None = None
    broken: float | None = None
    costs: Mapping[str, float] | None = None
    needed: int | None = None
    reason: str = ""
    is_adapted: bool = False  # since: then nothing is promised

    @classmethod
    def read(cls, record: Mapping[str, Any], threshold: float | None) -> "Decision | None":
        """The decision in a calibrator's record, with its threshold; None where there is none."""
        stored = dict(record.get("threshold") or {})
        if stored.pop("threshold", None) != threshold:
            stored = {}  # set by hand since: what was measured for another does not hold
        if threshold is None and not stored:
            return None
        names = {field.name for field in fields(cls)} - {"is_adapted"}
        known = {name: value for name, value in stored.items() if name in names}
        known = {"kind": "chosen"} | {k: v for k, v in known.items() if v is not None}
        return cls(threshold, **known, is_adapted="adapted" in record)

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> "Decision | None":
        """The decision in the metadata of an exported file or saved folder."""
        stored = metadata.get("threshold")
        if not stored:
            return None
        adapted = {"adapted": True} if metadata.get("adapted") else {}
        record = {"threshold": {**stored, "threshold": stored["value"]}, **adapted}
        return cls.read(record, stored["value"])

    @property
    def is_guaranteed(self) -> bool:
        return self.kind == "guaranteed" and self.threshold is not None and not self.is_adapted

    def to_record(self, **asked: Any) -> dict[str, Any]:
        """Plain values for a calibrator's record."""
        values = {k: v for k, v in asdict(self).items() if v is not None and k != "is_adapted"}
        if self.threshold is None:
            values["threshold"] = None
        record = {"asked": asked, **values}
        check_decision(record)
        return record

    def describe(self) -> str:
        """One line: what happens to 1,000 images, and what is promised of it."""
        if self.threshold is None:
            where = f" ({self.measured_on})" if self.measured_on else ""
            return f"no threshold: {self.reason}{where}"
        if self.coverage is None:
            return f"accepts confidence from {self.threshold:.4f}"
        answered = f"of 1,000 images about {1000 * self.coverage:,.0f} answered"
        if self.costs is not None:
            low, cost, high = (self.costs[name] for name in ("low", "per_1000", "high"))
            return f"{answered}, at a cost of {cost:,.4g} ({low:,.4g} to {high:,.4g})"
        if self.max_error is None:
            return answered
        wrong = f"at most {format_share(self.max_error)} of them wrong"
        if self.is_adapted:
            return f"{answered} on the calibration data; {NOT_COVERED}"
        if self.kind == "approximate":
            sure = "not guaranteed"
            if self.broken is not None:
                sure = f"approximate: broken in {format_share(self.broken)} of simulated data sets"
            return (
                f"{answered}, about {format_share(self.max_error)} of them wrong or fewer ({sure})"
            )
        assert self.assurance is not None
        return f"{answered}, {wrong}, {format_share(self.assurance)} sure"


def format_share(share: float) -> str:
    """A share in per cent, as short as it is exact: 2 %, 0.5 %."""
    return f"{100 * share:.4g} %"
