"""Requirements on what was measured: "ece<=0.03", "accuracy_accepted.low>=0.97"."""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rightly.metrics import METRICS

# What can be required beside metrics.
OF_SETS = {
    "accuracy": "share of all samples that are right",
    "coverage": "share that the threshold accepts",
    "accuracy_accepted": "share of the accepted that are right",
    "cost": "of 1,000 images at the threshold",
    "set_coverage": "share of prediction sets that hold the true class",
    "set_size": "mean number of classes in a prediction set",
}
REMEDIES = {
    "cost": "--cost-error and --cost-review",
    "set_coverage": "prediction sets (fit --coverage), of a calibrator that is not adapted,",
    "set_size": "prediction sets (fit --coverage)",
}
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
PATTERN = re.compile(r"\s*(\w+)(?:\.(\w+))?\s*(>=|<=|>|<)\s*(\S+)\s*")


class Measured(NamedTuple):
    """A value and the ends of its 95 % interval; nan where there are none."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Requirement:
    """A measured value, or an end of its interval, and the limit that it must keep."""

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
        if found is None or end not in Measured._fields or not math.isfinite(limit):
            raise ValueError(
                f"require must be like 'ece<=0.03' or 'accuracy_accepted.low>=0.97', got {text!r}: "
                f"a name, .low or .high for an end of its 95 % interval, one of "
                f"{' '.join(COMPARISONS)}, and a number. Names: {list_names()}"
            )
        name = found[1]
        if name not in OF_SETS and name not in METRICS:
            raise ValueError(
                f"require must name something that is measured, got {name!r}: one of {list_names()}"
            )
        return cls(name, end, found[3], limit)

    def check(self, measured: Mapping[str, Measured], dataset: str) -> str | None:
        """What is missed on a test set, with value and limit; None where it is met."""
        if self.name not in measured:
            remedy = REMEDIES.get(self.name, "a threshold")
            raise ValueError(f"require needs {remedy} to measure {self.name}, but there is none")
        value = getattr(measured[self.name], self.end)
        title = self.name if self.end == "value" else f"{self.name}.{self.end}"
        if math.isnan(value) and self.end != "value" and not math.isnan(measured[self.name].value):
            raise ValueError(
                f"require needs intervals for {title}, but there are none: leave out "
                "--no-intervals, or require the value itself"
            )
        if COMPARISONS[self.comparison](value, self.limit):  # which nan never is
            return None
        shown = "not available" if math.isnan(value) else f"{value:.6g}"
        return f"{title} on {dataset} is {shown}, required {self.comparison} {self.limit:g}"


def list_names() -> str:
    return ", ".join([*OF_SETS, *METRICS])


def find_missed(
    requirements: Sequence[Requirement], sets: Mapping[str, Mapping[str, Measured]]
) -> list[str]:
    """What is missed of the requirements, which hold for every test set."""
    missed = (one.check(values, name) for name, values in sets.items() for one in requirements)
    return [text for text in missed if text is not None]
