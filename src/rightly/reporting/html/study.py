"""What a report is made from: plain arrays and rows, so that it can be made from anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from rightly.evaluation.results import Bootstrap, Result
from rightly.shapes import Confidence, Correct, TrueClasses

THRESHOLDS = np.arange(101) / 100  # where the slider can stand


@dataclass(frozen=True, eq=False)
class Example:
    """A confident mistake, by its row in the test set, with a picture where there is one."""

    row: int
    name: str = ""
    picture: str = ""  # a data URI


@dataclass(frozen=True, eq=False)
class TestSet:
    """One test set: what was said before and after calibration, and what is true."""

    __test__ = False  # pytest would take it for a test by its name

    name: str
    before: Confidence
    after: Confidence
    predicted: TrueClasses
    labels: TrueClasses
    rows_before: Mapping[str, Result]  # by metric
    rows_after: Mapping[str, Result]
    changes: Mapping[str, Result]
    examples: Sequence[Example] = ()

    @property
    def correct(self) -> Correct:
        return self.predicted == self.labels


@dataclass(frozen=True)
class Made:
    """How a report came about."""

    command: str
    versions: Mapping[str, str]
    digests: Mapping[str, str]  # by file
    seed: int
    bootstrap: Bootstrap


@dataclass(frozen=True, eq=False)
class Study:
    """A calibrator on some test sets, beside others."""

    title: str
    method: str
    calibration_count: int
    sets: Sequence[TestSet]
    comparison: Sequence[Result]
    reference: str
    view_names: Sequence[str]
    made: Made
    class_names: Sequence[str] | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    def class_name(self, k: int | np.integer) -> str:
        return str(k) if self.class_names is None else self.class_names[int(k)]


@dataclass(frozen=True, eq=False)
class Accepted:
    """How many samples reach each threshold, and how many of them are right."""

    count: Int[np.ndarray, " thresholds"]
    right: Int[np.ndarray, " thresholds"]


def accepted(confidence: Confidence, correct: Correct) -> Accepted:
    """What the slider shows."""
    count, right = (
        len(some) - np.searchsorted(np.sort(some), THRESHOLDS, side="left")
        for some in (confidence, confidence[correct])
    )
    return Accepted(count, right)


@dataclass(frozen=True, eq=False)
class ClassLine:
    """The samples of one predicted class."""

    name: str
    count: int
    accuracy: float
    before: float
    after: float

    @property
    def gap(self) -> float:
        return self.after - self.accuracy


def class_lines(study: Study, one: TestSet, most: int = 200) -> list[ClassLine]:
    """One line for each predicted class, those with the most samples where there are many."""
    count = np.bincount(one.predicted)

    def mean(values: Float[np.ndarray, " n"]) -> np.ndarray:
        return np.bincount(one.predicted, weights=values) / np.maximum(count, 1)

    accuracy, before, after = (mean(1.0 * x) for x in (one.correct, one.before, one.after))
    order = [int(k) for k in np.argsort(-count, kind="stable")[:most] if count[k]]
    return [
        ClassLine(
            study.class_name(k),
            int(count[k]),
            float(accuracy[k]),
            float(before[k]),
            float(after[k]),
        )
        for k in sorted(order)
    ]


def worst(one: TestSet, most: int = 12) -> list[int]:
    """Rows of the wrong predictions that stay most confident after calibration."""
    wrong = np.flatnonzero(~one.correct)
    return [int(i) for i in wrong[np.argsort(-one.after[wrong], kind="stable")][:most]]
