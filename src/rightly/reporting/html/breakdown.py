"""A test set in parts, by predicted class or by group: where confidence can be trusted least."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rightly.decisions.thresholds import exact_interval
from rightly.reporting.html.study import StudySet

FEW = 20  # samples; below, the interval of a share is up to 45 points wide
MOST = 1000  # rows of a table


@dataclass(frozen=True)
class Part:
    """Some samples in means: how often they are right, and how sure the model is."""

    name: str
    count: int
    right: int
    low: float  # exact 95 % interval of the accuracy
    high: float
    before: float
    after: float

    @property
    def accuracy(self) -> float:
        return self.right / self.count

    @property
    def gap(self) -> float:
        """How much too sure, after calibration."""
        return self.after - self.accuracy

    @property
    def gap_low(self) -> float:
        return self.after - self.high

    @property
    def gap_high(self) -> float:
        return self.after - self.low

    @property
    def words(self) -> str:
        """What the interval says of the confidence; nothing where it may be right."""
        return "too sure" if self.gap_low > 0 else "not sure enough" if self.gap_high < 0 else ""


@dataclass(frozen=True)
class Breakdown:
    """The parts of a test set: those to read, those with too few samples, how many are left out."""

    parts: Sequence[Part]
    few: Sequence[Part]
    left_out: int = 0


def break_down(
    one: StudySet, key: Int[np.ndarray, " n"], names: Sequence[str], *, worst_first: bool = False
) -> Breakdown:
    """The parts of a test set by a number for each sample, and the names of these numbers.

    In their order, or by how much too sure they are for certain: the low end of the interval,
    since of many small parts some look bad by chance.
    """
    count = np.bincount(key, minlength=len(names))

    def total(values: np.ndarray) -> Float[np.ndarray, " parts"]:
        return np.bincount(key, weights=values, minlength=len(names))

    right, before, after = (total(1.0 * x) for x in (one.correct, one.before, one.after))
    largest = np.argsort(-count, kind="stable")[:MOST]
    parts = [
        Part(
            names[k],
            int(count[k]),
            int(right[k]),
            *exact_interval(int(right[k]), int(count[k])),
            float(before[k] / count[k]),
            float(after[k] / count[k]),
        )
        for k in sorted(largest.tolist())
        if count[k]
    ]
    if worst_first:
        parts.sort(key=lambda part: -part.gap_low)
    left_out = max(0, int((count > 0).sum()) - MOST)
    return Breakdown(
        [part for part in parts if part.count >= FEW],
        [part for part in parts if part.count < FEW],
        left_out,
    )
