"""Outcomes of n samples, and many resamples of them at once.

A resample is how often each sample counts: a row of whole numbers. Once samples are sorted by
confidence, metrics only need sums of weights up to a confidence, so that a thousand resamples cost
a few passes over one array instead of a thousand sorts.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int, Integer

from rightly.metrics import binning
from rightly.shapes import Confidence, Correct, Probabilities, TrueClasses

Inputs = Literal["confidence", "probabilities"]
Counts = Integer[np.ndarray, "b n"]
Values = Float[np.ndarray, " b"]
Cumulative = Int[np.ndarray, "b levels"]
Ends = Int[np.ndarray, " edges"]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Confidence and correctness of n samples, with what sorting them once gives."""

    confidence: Confidence
    correct: Correct
    probabilities: Probabilities | None = None
    labels: TrueClasses | None = None

    def inputs(self, kind: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """The two arguments of a metric that looks at confidence or at probabilities."""
        return (self.confidence, self.correct) if kind == "confidence" else self.distribution

    @property
    def distribution(self) -> tuple[Probabilities, TrueClasses]:
        """Probabilities and labels, refused where the outcomes have none."""
        if self.probabilities is None or self.labels is None:
            raise ValueError(
                "metrics of probabilities need probabilities and labels, got outcomes without: "
                "pass Outcomes(confidence, correct, probabilities, labels)"
            )
        return self.probabilities, self.labels

    @property
    def unit(self) -> int:
        """In what parts of 1 confidence is added up, in integers.

        NumPy adds integers several times as fast as floats. Sums of n confidences fit into 62
        bits this way, and rounding stays far below any printed digit.
        """
        return 2 ** (62 - len(self.confidence).bit_length())

    @cached_property
    def order(self) -> Int[np.ndarray, " n"]:
        """The samples from the least confident up."""
        return np.argsort(self.confidence, kind="stable")

    @cached_property
    def level_ends(self) -> Int[np.ndarray, " levels"]:
        """Where, in that order, each distinct confidence occurs last: ties are one level."""
        c = self.confidence[self.order]
        return np.flatnonzero(np.append(c[1:] > c[:-1], True))

    @cached_property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """The distinct confidences."""
        return self.confidence[self.order][self.level_ends]

    @cached_property
    def wrong_levels(self) -> Int[np.ndarray, " k"]:
        """The levels that hold a wrong sample."""
        return np.unique(np.searchsorted(self.levels, self.confidence[~self.correct]))

    @cached_property
    def true_probability(self) -> Float[np.ndarray, " n"]:
        """The probability of the true class."""
        p, y = self.distribution
        return p[np.arange(len(y)), y]

    @cached_property
    def classwise_excess(self) -> tuple[Float[np.ndarray, "n c"], Any]:
        """Probability minus truth, of every class: in the lowest bin, and a row for each other.

        Few classes of a sample leave the lowest bin, so that the others make a sparse matrix.
        """
        from scipy.sparse import csr_array

        p, labels = self.distribution
        excess = p - (labels[:, None] == np.arange(p.shape[1]))
        lowest = p <= 1 / binning.BINS
        row, k = np.nonzero(~lowest)
        group = k * binning.BINS + binning.assign_equal_width(p[row, k], binning.BINS)
        groups, at = np.unique(group, return_inverse=True)
        above = csr_array((excess[row, k], (at, row)), shape=(len(groups), len(p)))
        return np.where(lowest & (p > 0), excess, 0.0), above


@dataclass(frozen=True, eq=False)
class Replicates:
    """Some resamples of outcomes; the sums are of all samples up to each level."""

    outcomes: Outcomes
    counts: Counts

    @cached_property
    def n(self) -> Values:
        """Samples in each resample."""
        return self.counts.sum(-1).astype(np.float64)

    @property
    def units(self) -> Values:
        """What the excess of all samples is measured against."""
        return self.n * self.outcomes.unit

    @cached_property
    def weight(self) -> Cumulative:
        """How many samples there are."""
        return self._sum_up_to_levels(self._sorted)

    @cached_property
    def right(self) -> Cumulative:
        """How many of them are right."""
        return self._sum_up_to_levels(self._sorted * self.outcomes.correct[self.outcomes.order])

    @cached_property
    def wrong(self) -> Cumulative:
        """How many of them are wrong."""
        return self.weight - self.right

    @cached_property
    def excess(self) -> Cumulative:
        """Confidence minus correctness, in units."""
        units = np.rint(self.outcomes.levels * self.outcomes.unit).astype(np.int64)
        confidence = (sum_by_level(self.weight) * units).cumsum(-1)
        return confidence - self.right * np.int64(self.outcomes.unit)

    @cached_property
    def float_counts(self) -> Float[np.ndarray, "b n"]:
        """The counts in the type in which matrices are multiplied fast."""
        return self.counts.astype(np.float64)

    def mean(self, values: Float[np.ndarray, " n"]) -> Values:
        """Mean in each resample of a number that each sample has."""
        return self.float_counts @ values / self.n

    @cached_property
    def _sorted(self) -> Int[np.ndarray, "b n"]:
        return np.take(self.counts, self.outcomes.order, -1).astype(np.int32)

    def _sum_up_to_levels(self, weights: Int[np.ndarray, "b n"]) -> Cumulative:
        sums = weights.cumsum(-1, dtype=np.int32)
        no_ties = len(self.outcomes.level_ends) == sums.shape[-1]
        return sums if no_ties else sums[:, self.outcomes.level_ends]


def sum_by_level(cumulative: Cumulative) -> Cumulative:
    """What each level adds to a cumulative sum."""
    return np.diff(cumulative, axis=-1, prepend=cumulative.dtype.type(0))


def sum_by_bin(cumulative: Cumulative, ends: Ends) -> Int[np.ndarray, "b bins"]:
    """Sums over the levels ends[0]:ends[1], ends[1]:ends[2], and so on."""
    sums = np.where(ends > 0, cumulative[:, ends - 1], 0)
    return np.diff(sums, axis=-1)


def bin_ends(levels: Float[np.ndarray, " levels"]) -> Ends:
    """How many levels lie below each bin of equal width, and below 1."""
    index = binning.assign_equal_width(levels, binning.BINS)
    return np.searchsorted(index, np.arange(binning.BINS + 1))
