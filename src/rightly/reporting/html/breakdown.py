"""A test set in parts, by predicted class or by group: where confidence can be trusted least."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from rightly.decisions import Decision, exact_interval
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
    decision: Decision  # at the threshold, measured on these samples

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
    one: StudySet,
    key: Int[np.ndarray, " n"],
    names: Sequence[str],
    threshold: float,
    *,
    worst_first: bool = False,
) -> Breakdown:
    """The parts of a test set by a number for each sample, and the names of these numbers.

    In their order, or by how much too sure they are for certain: the low end of the interval,
    since of many small parts some look bad by chance.
    """
    order = np.argsort(key, kind="stable")
    ends = np.searchsorted(key[order], np.arange(len(names) + 1))
    largest = np.argsort(-np.diff(ends), kind="stable")[:MOST]
    parts = [
        _summarise(one, order[ends[k] : ends[k + 1]], names[k], threshold)
        for k in sorted(largest.tolist())
        if ends[k] < ends[k + 1]
    ]
    if worst_first:
        parts.sort(key=lambda part: -part.gap_low)
    return Breakdown(
        [part for part in parts if part.count >= FEW],
        [part for part in parts if part.count < FEW],
        max(0, int((np.diff(ends) > 0).sum()) - MOST),
    )


def break_down_groups(one: StudySet, threshold: float) -> Breakdown | None:
    """The parts of a test set by group, the worst first; none where there are no groups."""
    if one.groups is None:
        return None
    names, key = np.unique(one.groups, return_inverse=True)
    spelled = [str(name) or "no group" for name in names]
    return break_down(one, key, spelled, threshold, worst_first=True)


def _summarise(one: StudySet, rows: Int[np.ndarray, " rows"], name: str, threshold: float) -> Part:
    right, after = int(one.correct[rows].sum()), one.after[rows]
    return Part(
        name,
        len(rows),
        right,
        *exact_interval(right, len(rows)),
        float(one.before[rows].mean()),
        float(after.mean()),
        Decision.at(threshold, after, one.correct[rows]),
    )
