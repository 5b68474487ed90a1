"""Every metric of many resamples at once, in NumPy.

A resample is how often each sample counts: a row of whole numbers. Once samples are sorted by
confidence, metrics only need sums of weights up to a confidence, so that a thousand resamples cost
a few passes over one array instead of a thousand sorts. With all weights 1 each function here
gives what its namesake in METRICS gives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer

from rightly.metrics import binning
from rightly.metrics import kernel_smoothing as smoothing
from rightly.shapes import Confidence, Correct, Probabilities, TrueClasses

BINS = 25  # the default of the binned metrics

Counts = Integer[np.ndarray, "b n"]
Values = Float[np.ndarray, " b"]
Cumulative = Int[np.ndarray, "b levels"]
Ends = Int[np.ndarray, " edges"]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What a calibrator said about n samples, with what sorting them once gives."""

    confidence: Confidence
    correct: Correct
    probabilities: Probabilities | None = None
    labels: TrueClasses | None = None

    @property
    def unit(self) -> int:
        """In what parts of 1 confidence is added up, in integers.

        NumPy adds integers several times as fast as floats. Sums of n confidences fit into 62
        bits this way, and rounding stays far below any printed digit.
        """
        return 2 ** (62 - len(self.confidence).bit_length())

    @cached_property
    def order(self) -> Int[np.ndarray, " n"]:
        return np.argsort(self.confidence, kind="stable")

    @cached_property
    def last(self) -> Int[np.ndarray, " levels"]:
        """Where, in that order, each distinct confidence occurs last: ties are one level."""
        c = self.confidence[self.order]
        return np.flatnonzero(np.append(c[1:] > c[:-1], True))

    @cached_property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """The distinct confidences."""
        return self.confidence[self.order][self.last]

    @cached_property
    def with_wrong(self) -> Int[np.ndarray, " some"]:
        """The levels that hold a wrong sample."""
        return np.unique(np.searchsorted(self.levels, self.confidence[~self.correct]))

    @cached_property
    def of_true(self) -> Float[np.ndarray, " n"]:
        """The probability of the true class."""
        p, y = self.distribution
        return p[np.arange(len(y)), y]

    @cached_property
    def by_class_and_bin(self) -> tuple[Float[np.ndarray, "n c"], Any]:
        """Probability minus truth, of every class: in the lowest bin, and a row for each other.

        Few classes of a sample leave the lowest bin, so that the others make a sparse matrix.
        """
        from scipy.sparse import csr_array

        p, labels = self.distribution
        excess = p - (labels[:, None] == np.arange(p.shape[1]))
        lowest = p <= 1 / BINS
        row, k = np.nonzero(~lowest)
        group = k * BINS + binning.equal_width(p[row, k], BINS)
        used, at = np.unique(group, return_inverse=True)
        above = csr_array((excess[row, k], (at, row)), shape=(len(used), len(p)))
        return np.where(lowest & (p > 0), excess, 0.0), above

    @property
    def distribution(self) -> tuple[Probabilities, TrueClasses]:
        if self.probabilities is None or self.labels is None:
            raise ValueError("metrics of probabilities need probabilities and labels")
        return self.probabilities, self.labels


@dataclass(frozen=True, eq=False)
class Replicates:
    """Some resamples of what was said; the sums are of all samples up to each level."""

    scored: Outcomes
    counts: Counts

    @cached_property
    def n(self) -> Values:
        return self.counts.sum(-1).astype(np.float64)

    @property
    def units(self) -> Values:
        """What the excess of all samples is measured against."""
        return self.n * self.scored.unit

    @cached_property
    def weight(self) -> Cumulative:
        return self._up_to_levels(self._sorted)

    @cached_property
    def right(self) -> Cumulative:
        """Weight of the right samples."""
        return self._up_to_levels(self._sorted * self.scored.correct[self.scored.order])

    @cached_property
    def wrong(self) -> Cumulative:
        return self.weight - self.right

    @cached_property
    def excess(self) -> Cumulative:
        """Confidence minus correctness, in units."""
        units = np.rint(self.scored.levels * self.scored.unit).astype(np.int64)
        return (steps(self.weight) * units).cumsum(-1) - self.right * np.int64(self.scored.unit)

    @cached_property
    def _sorted(self) -> Int[np.ndarray, "b n"]:
        return np.take(self.counts, self.scored.order, -1).astype(np.int32)

    def _up_to_levels(self, weights: Int[np.ndarray, "b n"]) -> Cumulative:
        sums = weights.cumsum(-1, dtype=np.int32)
        no_ties = len(self.scored.last) == sums.shape[-1]
        return sums if no_ties else sums[:, self.scored.last]

    @cached_property
    def floats(self) -> Float[np.ndarray, "b n"]:
        """The counts in the type in which matrices are multiplied fast."""
        return self.counts.astype(np.float64)

    def mean(self, of: Float[np.ndarray, " n"]) -> Values:
        """Replicates mean of a number that each sample has."""
        return self.floats @ of / self.n


def steps(cumulative: Cumulative) -> Cumulative:
    """What each level adds."""
    return np.diff(cumulative, axis=-1, prepend=cumulative.dtype.type(0))


def between(cumulative: Cumulative, ends: Ends) -> Int[np.ndarray, "b bins"]:
    """Sums over the levels ends[0]:ends[1], ends[1]:ends[2], and so on."""
    sums = np.where(ends > 0, cumulative[:, ends - 1], 0)
    return np.diff(sums, axis=-1)


def bin_ends(levels: Float[np.ndarray, " levels"]) -> Ends:
    """How many levels lie below each bin of equal width, and below 1."""
    return np.searchsorted(binning.equal_width(levels, BINS), np.arange(BINS + 1))


def _nan_if_none(x: Values) -> Values:
    return np.where(x > 0, x, np.nan)


def ece(w: Replicates) -> Values:
    return abs(between(w.excess, bin_ends(w.scored.levels))).sum(-1) / w.units


def brier(w: Replicates) -> Values:
    return w.mean((w.scored.confidence - w.scored.correct) ** 2)


def ace(w: Replicates) -> Values:
    levels = w.scored.levels
    at = (w.n[:, None] - 1) * binning.equal_width_edges(BINS)[1:-1]
    rank = np.floor(at)
    share = at - rank
    below, above = (
        levels[[np.searchsorted(*pair, side="right") for pair in zip(w.weight, r, strict=True)]]
        for r in (rank, np.minimum(rank + 1, w.n[:, None] - 1))
    )
    # Rounded as np.quantile does: an edge that equals a level decides on which side it lies.
    step = above - below
    edges = np.where(share < 0.5, below + step * share, above - step * (1 - share))
    inner = np.searchsorted(levels, edges, side="left")
    sums = np.where(inner > 0, np.take_along_axis(w.excess, inner - 1, -1), 0)
    of_bins = np.diff(sums, axis=-1, prepend=np.int64(0), append=w.excess[:, -1:])
    return abs(of_bins).sum(-1) / w.units


def mce(w: Replicates) -> Values:
    ends = bin_ends(w.scored.levels)
    held = between(w.weight, ends)
    gaps = abs(between(w.excess, ends)) / np.where(held > 0, held, np.nan)
    return np.nanmax(gaps, -1) / w.scored.unit


def ks(w: Replicates) -> Values:
    return np.maximum(w.excess.max(-1), -w.excess.min(-1)) / w.units


def ks_released(w: Replicates) -> Values:
    c, correct = w.scored.confidence, w.scored.correct
    on_wrong, missing_on_right = w.mean(c * ~correct), w.mean((1 - c) * correct)
    return np.maximum(on_wrong, missing_on_right - on_wrong)


def auroc(w: Replicates) -> Values:
    some = w.scored.with_wrong
    wrong = steps(w.wrong[:, some])
    right_below = np.where(some > 0, w.right[:, some - 1], 0)
    right_above = w.right[:, -1:] - (w.right[:, some] + right_below) / 2  # a tie counts half
    return (wrong * right_above).sum(-1) / _nan_if_none(1.0 * w.right[:, -1] * w.wrong[:, -1])


def nll(w: Replicates) -> Values:
    return w.mean(-np.log(np.clip(w.scored.of_true, np.finfo(np.float64).eps, 1)))


def classwise_ece(w: Replicates) -> Values:
    lowest, above = w.scored.by_class_and_bin
    gaps = abs(w.floats @ lowest).sum(-1) + abs(above @ w.floats.T).sum(0)
    return gaps / (w.n * lowest.shape[1])


def smooth_ece(w: Replicates) -> Values:
    cells = smoothing.cell_of(w.scored.levels)
    ends = np.searchsorted(cells, np.arange(smoothing.CELLS + 1))
    return smoothing.fixed_point_bandwidth(between(w.excess, ends) / w.units[:, None])


def aurc(w: Replicates) -> Values:
    # A sample that is wrong and has k more confident ones raises the error rate among the first
    # k + 1, k + 2, ... n by 1 / (k + 1), 1 / (k + 2), ... 1 / n.
    n = w.counts.shape[-1]
    raised = np.append((1 / np.arange(n, 0, -1)).cumsum()[::-1], 0.0)
    total = np.append(0.0, raised.cumsum())
    some = w.scored.with_wrong
    first = w.weight[:, -1:] - w.weight[:, some]
    after = w.weight[:, -1:] - np.where(some > 0, w.weight[:, some - 1], 0)
    # Each sample of a tie gets the tie's mean error.
    rate = steps(w.wrong[:, some]) / np.maximum(after - first, 1)
    return (rate * (total[after] - total[first])).sum(-1) / w.n


def confidence_gap(w: Replicates) -> Values:
    c, correct = w.scored.confidence, w.scored.correct
    wrong, right = (
        w.mean(c * side) / _nan_if_none(w.mean(1.0 * side)) for side in (~correct, correct)
    )
    return wrong - right


def narrowly_wrong(w: Replicates) -> Values:
    p, labels = w.scored.distribution
    near = w.scored.of_true > 0.5 * p.max(-1)
    return w.mean(1.0 * (near & (p.argmax(-1) != labels)))


WEIGHTED: Mapping[str, Callable[[Replicates], Values]] = {
    "ece": ece,
    "brier": brier,
    "ace": ace,
    "mce": mce,
    "ks": ks,
    "ks_released": ks_released,
    "auroc": auroc,
    "nll": nll,
    "classwise_ece": classwise_ece,
    "smooth_ece": smooth_ece,
    "aurc": aurc,
    "confidence_gap": confidence_gap,
    "narrowly_wrong": narrowly_wrong,
}
