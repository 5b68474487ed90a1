"""States: what metrics are functions of, for samples, resamples and streams alike.

The leading axis b of every state counts resamples; samples themselves are one, in which each counts
once. A resample is how often each sample counts: a row of whole numbers. Samples are sorted by
confidence once; sums up to each confidence then give a thousand resamples in a few passes over one
array. `Bins`, `ClassBins` and `Sums` of two batches add up, field by field.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int, Integer, Shaped

from rightly.resampling import AT_ONCE
from rightly.shapes import Confidence, Correct, Probabilities, TrueClasses

BINS = 25  # the default of the binned metrics, as in the paper's tables
BLOCK = 2**15  # samples in work at a time, so that they stay in a cache
GROUP = 64  # samples between two places at which sums are kept; divides BLOCK
CELLS = 1000  # of smooth metrics: finer than the width found on 1e5 calibrated samples, 0.007

Inputs = Literal["confidence", "probabilities"]
Counts = Integer[np.ndarray, "b n"]
Values = Float[np.ndarray, " b"]
InBins = Float[np.ndarray, "b bins"]
UpToLevels = Int[np.ndarray, "b levels"]
Ends = Int[np.ndarray, "_ ends"]  # of every resample, or of all
State = TypeVar("State", bound=tuple[Any, ...])


def equal_width_edges(bins: int) -> Float[np.ndarray, " edges"]:
    """The bins + 1 edges m / bins."""
    # A true quotient is rounded once, so that 7 / 25 is the very number a user writes as 0.28;
    # linspace multiplies by a rounded step and can miss it.
    return np.arange(bins + 1) / bins


def assign_equal_width(values: Float[np.ndarray, "*n"], bins: int) -> Int[np.ndarray, "*n"]:
    """The bin of each value: m where m / bins < value <= (m + 1) / bins, and 0 for value 0."""
    # The outer edges are left out of the search: no value can fall off either end.
    return np.searchsorted(equal_width_edges(bins)[1:-1], values, side="left")


def assign_cells(values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The cell of the fine grid that each value lies in."""
    return np.minimum((values * CELLS).astype(np.int64), CELLS - 1)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Confidence and correctness of n samples, with what sorting them once gives."""

    confidence: Confidence
    correct: Correct
    probabilities: Probabilities | None = None
    labels: TrueClasses | None = None

    @classmethod
    def of(cls, kind: Inputs, first: np.ndarray, second: np.ndarray) -> "Outcomes":
        """Outcomes from (confidence, correct) or from (probabilities, labels)."""
        if kind == "confidence":
            return cls(first, second)
        classes = first.argmax(-1)
        return cls(first[np.arange(len(classes)), classes], classes == second, first, second)

    def inputs(self, kind: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """The two arguments of a metric of confidence or of probabilities."""
        if kind == "confidence":
            return self.confidence.astype(np.float64, copy=False), self.correct
        return self.distribution

    def __getitem__(self, rows: slice) -> "Outcomes":
        """Some of the samples."""
        p, labels = (x if x is None else x[rows] for x in (self.probabilities, self.labels))
        return Outcomes(self.confidence[rows], self.correct[rows], p, labels)

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
        """The number of units in 1, in which confidence is added up as whole numbers.

        NumPy adds integers several times as fast as floats. Sums of n confidences fit into 62
        bits this way, and rounding stays far below any printed digit.
        """
        return 2 ** (62 - len(self.confidence).bit_length())

    def in_units(self, values: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Numbers in units, rounded to whole ones."""
        units = np.multiply(values, self.unit, dtype=np.float64)
        return np.rint(units, out=units)

    @cached_property
    def sorted(self) -> tuple[Confidence, Correct]:
        """Confidence from the least up, and whether each is wrong, of a tie the wrong last."""
        # A confidence has the order of its bits, and its sign bit is free: shifted by one, with
        # a last bit for being wrong, one number holds the pair. An order of indices takes five to
        # eight times as long to sort.
        c = self.confidence
        c = c if c.dtype == np.float32 else c.astype(np.float64, copy=False)
        unsigned = np.uint32 if c.dtype == np.float32 else np.uint64
        keys = np.left_shift(np.ascontiguousarray(c).view(unsigned), unsigned(1))
        keys |= ~self.correct
        keys.sort()
        wrong = np.empty(len(keys), bool)
        for start in range(0, len(keys), BLOCK):  # fresh memory would cost more than the work
            block = keys[start : start + BLOCK]
            np.copyto(wrong[start : start + BLOCK], block & unsigned(1), casting="unsafe")
            block >>= unsigned(1)
        return keys.view(c.dtype), wrong

    @cached_property
    def order(self) -> Int[np.ndarray, " n"]:
        """The samples from the least confident up."""
        return np.argsort(self.confidence, kind="stable")

    @cached_property
    def is_level_end(self) -> Correct:
        """Whether, in that order, each sample is the last of its confidence: ties are one level."""
        c, _ = self.sorted
        return np.append(c[1:] > c[:-1], True)

    @cached_property
    def level_ends(self) -> Int[np.ndarray, " levels"] | None:
        """Where each level ends; None without ties."""
        return None if self.is_level_end.all() else np.flatnonzero(self.is_level_end)

    def at_level_ends(self, values: Shaped[np.ndarray, "*b n"]) -> Shaped[np.ndarray, "*b levels"]:
        """Of one value per sample in that order, those of the last of each level."""
        return values if self.level_ends is None else np.take(values, self.level_ends, -1)

    @cached_property
    def levels(self) -> Float[np.ndarray, " levels"]:
        """The distinct confidences."""
        return self.at_level_ends(self.sorted[0]).astype(np.float64, copy=False)

    @cached_property
    def wrong_levels(self) -> Int[np.ndarray, " k"]:
        """The levels that hold a wrong sample."""
        return np.flatnonzero(self.at_level_ends(self.sorted[1]))

    @cached_property
    def _class_excess(self) -> dict[int, tuple[Float[np.ndarray, "n c"], Any]]:
        return {}

    def class_excess(self, bins: int) -> tuple[Float[np.ndarray, "n c"], Any]:
        """Probability minus truth of every class: in the lowest bin, and a row for each other bin.

        Few classes of a sample leave the lowest bin, so that the others make a sparse matrix.
        """
        from scipy.sparse import csr_array

        if bins not in self._class_excess:
            p, labels = self.distribution
            excess = p - (labels[:, None] == np.arange(p.shape[1]))
            lowest = p <= 1 / bins
            row, k = np.nonzero(~lowest)
            group = k * bins + assign_equal_width(p[row, k], bins)
            above = csr_array((excess[row, k], (group, row)), shape=(p.shape[1] * bins, len(p)))
            self._class_excess[bins] = np.where(lowest & (p > 0), excess, 0.0), above
        return self._class_excess[bins]


class Sweep(NamedTuple):
    """What a pass over samples from the least confident up adds up."""

    before_groups: Int[np.ndarray, "2 groups"]  # wrong samples, and confidence in units
    largest_excess: int  # of confidence minus correctness, up to a level, in units
    pairs_lost_twice: int  # of a right sample and a more confident wrong one


def sweep(outcomes: Outcomes) -> Sweep:
    """Sums of all samples, in blocks: fresh memory for all would cost more than the arithmetic."""
    c, is_wrong = outcomes.sorted
    before_groups = np.zeros((2, len(c) // GROUP + 1), np.int64)
    # Up to each sample of a block; first what comes before the block.
    sums, is_end = np.zeros((2, BLOCK + 1), np.int64), np.empty(BLOCK, bool)
    largest, lost, at_level, wrong_at_level = 0, 0, 0, 0  # the last two: at the last level's end
    for start in range(0, len(c), BLOCK):
        block = c[start : start + BLOCK]
        m, first = len(block), start // GROUP + 1
        wrong, confidence = up_to = sums[:, : m + 1]
        wrong[1:], confidence[1:] = is_wrong[start : start + m], outcomes.in_units(block)
        np.cumsum(wrong, out=wrong)
        np.cumsum(confidence, out=confidence)
        before_groups[:, first : first + m // GROUP] = up_to[:, GROUP::GROUP]
        last = up_to[:, m].copy()
        following, is_end[m - 1] = c[start + 1 : start + m + 1], True
        np.less(block[: len(following)], following, out=is_end[: len(following)])
        if is_end[:m].all():
            at = np.arange(start, start + m + 1)
        else:
            ends = np.append(0, np.flatnonzero(is_end[:m]) + 1)
            at, wrong, confidence = ends + start, np.take(wrong, ends), np.take(confidence, ends)
        at[0], wrong[0] = at_level, wrong_at_level
        at_level, wrong_at_level = at[-1], wrong[-1]
        right = np.subtract(at, wrong, out=at)
        if len(at) > 1:
            confidence -= right * np.int64(outcomes.unit)
            largest = max(largest, int(confidence[1:].max()), -int(confidence[1:].min()))
            held, twice = wrong[1:] - wrong[:-1], right[1:] + right[:-1]
            lost += int(count_pairs_lost_twice(held[None], twice[None])[0])
        sums[:, 0] = last
    return Sweep(before_groups, largest, lost)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Outcomes in order of confidence, as they are or resampled: sums up to each level."""

    outcomes: Outcomes
    counts: Counts | None = None  # how often each sample counts; once without

    @cached_property
    def n(self) -> Values:
        """Samples."""
        if self.counts is None:
            return np.array([float(len(self.outcomes.correct))])
        return self.counts.sum(-1).astype(np.float64)

    @cached_property
    def weight(self) -> UpToLevels:
        """How many samples there are up to each level."""
        if self.counts is None:
            places = np.arange(1, len(self.outcomes.correct) + 1, dtype=np.int32)
            return self.outcomes.at_level_ends(places)[None]
        return self._sum_up_to_levels(self._sorted_counts)

    @cached_property
    def held(self) -> UpToLevels:
        """How many samples each level holds."""
        return step(self.weight)

    @cached_property
    def right(self) -> UpToLevels:
        """How many of them are right."""
        if self.counts is None:
            right = (~self.outcomes.sorted[1]).cumsum(dtype=np.int32)
            return self.outcomes.at_level_ends(right)[None]
        correct = self.outcomes.correct[self.outcomes.order]
        return self._sum_up_to_levels(self._sorted_counts * correct)

    @cached_property
    def wrong(self) -> UpToLevels:
        """How many of them are wrong."""
        return self.weight - self.right

    @cached_property
    def excess(self) -> UpToLevels:
        """Confidence minus correctness, in units."""
        excess = self.sum_over_levels(self.outcomes.levels)
        excess -= self.right * np.int64(self.outcomes.unit)
        return excess

    def sum_over_levels(self, values: Float[np.ndarray, " levels"]) -> UpToLevels:
        """The sums, up to each level, of a number that its samples have, in units."""
        sums = self.held * self.outcomes.in_units(values).astype(np.int64)
        return np.cumsum(sums, axis=-1, out=sums)

    @cached_property
    def n_right(self) -> Values:
        """Right samples."""
        if self.counts is None:
            return np.array([float(np.count_nonzero(self.outcomes.correct))])
        return self.right[:, -1].astype(np.float64)

    @cached_property
    def sweep(self) -> Sweep:
        """What one pass over the samples adds up."""
        return sweep(self.outcomes)

    @property
    def largest_excess(self) -> Values:
        """The largest absolute excess up to a level, in units."""
        if self.counts is None:
            return np.array([float(self.sweep.largest_excess)])
        return np.maximum(self.excess.max(-1), -self.excess.min(-1)).astype(np.float64)

    @property
    def pairs_lost(self) -> Values:
        """Pairs of a right sample and a more confident wrong one; a tie counts half."""
        if self.counts is None:
            return np.array([self.sweep.pairs_lost_twice / 2])
        levels = self.outcomes.wrong_levels
        right = np.take(self.right, levels, -1)
        right_below = np.where(levels > 0, np.take(self.right, levels - 1, -1), 0)
        wrong = step(np.take(self.weight, levels, -1) - right)
        return count_pairs_lost_twice(wrong, right + right_below) / 2

    @property
    def ordered(self) -> Confidence:
        """The confidences among which bins end: of every sample, or the levels of resamples."""
        return self.outcomes.sorted[0] if self.counts is None else self.outcomes.levels

    def at_rank(self, rank: Int[np.ndarray, "b k"]) -> Float[np.ndarray, "b k"]:
        """The confidence of the samples with so many before them."""
        if self.counts is None:
            return self.ordered[rank].astype(np.float64, copy=False)
        found = [np.searchsorted(*x, side="right") for x in zip(self.weight, rank, strict=True)]
        return self.ordered[found]

    def sums_between(self, ends: Ends) -> tuple[Int[np.ndarray, "b bins"], ...]:
        """Samples, right ones and excess between ends, which are places in `ordered`."""
        if self.counts is not None:
            return tuple(sum_between(x, ends) for x in (self.weight, self.right, self.excess))
        group, place = np.divmod(ends, GROUP)
        inside = np.arange(GROUP) < place[..., None]
        samples = np.where(inside, group[..., None] * GROUP + np.arange(GROUP), 0)
        c, wrong = (x[samples] for x in self.outcomes.sorted)
        units = np.where(inside, self.outcomes.in_units(c).astype(np.int64), 0)
        added = (inside & wrong).sum(-1), units.sum(-1)
        wrong, units = (
            step(x[group] + more) for x, more in zip(self.sweep.before_groups, added, strict=True)
        )
        size = step(ends)
        return size, size - wrong, units - (size - wrong) * np.int64(self.outcomes.unit)

    def total(self, values: Float[np.ndarray, " n"]) -> Values:
        """The sum over samples of a number that each has."""
        return values.sum(keepdims=True) if self.counts is None else self.float_counts @ values

    @cached_property
    def float_counts(self) -> Float[np.ndarray, "b n"]:
        """The counts in the type in which matrices are multiplied fast."""
        assert self.counts is not None
        return self.counts.astype(np.float64)

    @cached_property
    def _sorted_counts(self) -> Int[np.ndarray, "b n"]:
        assert self.counts is not None
        return np.take(self.counts, self.outcomes.order, -1).astype(np.int32)

    def _sum_up_to_levels(self, weights: Int[np.ndarray, "b n"]) -> UpToLevels:
        return self.outcomes.at_level_ends(weights.cumsum(-1, dtype=np.int32))


def step(cumulative: Int[np.ndarray, "*b levels"]) -> Int[np.ndarray, "*b levels"]:
    """What each level adds to a cumulative sum."""
    steps = cumulative.copy()
    steps[..., 1:] -= cumulative[..., :-1]
    return steps


def count_pairs_lost_twice(wrong: UpToLevels, right_twice: UpToLevels) -> Int[np.ndarray, " b"]:
    """Pairs of a wrong sample in a level and a right one below, 2 each, or in it, 1 each.

    `right_twice` is how many right samples there are up to each level plus those below it.
    """
    return np.einsum("bk,bk->b", wrong, right_twice, dtype=np.int64)


def sum_between(cumulative: UpToLevels, ends: Ends) -> Int[np.ndarray, "b bins"]:
    """Sums over the levels before ends[0], over ends[0]:ends[1], and so on."""
    if len(ends) == 1:
        before = np.take(cumulative, ends[0] - 1, -1)
    else:
        before = np.take_along_axis(cumulative, ends - 1, -1)
    return step(np.where(ends > 0, before, 0))


class Bins(NamedTuple):
    """What bins of confidence hold."""

    size: InBins  # samples
    right: InBins
    excess: InBins  # confidence minus correctness
    variance: InBins  # of correctness if confidence is calibrated; 0 unless asked for

    @property
    def n(self) -> Values:
        """Samples in all bins."""
        return self.size.sum(-1)

    @classmethod
    def between(cls, ranks: Ranks, ends: Ends) -> "Bins":
        """Bins that end before these places in `ranks.ordered`."""
        size, right, excess = ranks.sums_between(ends)
        return cls(size * 1.0, right * 1.0, excess / ranks.outcomes.unit, np.zeros(size.shape))

    @classmethod
    def of_equal_width(cls, ranks: Ranks, bins: int = BINS) -> "Bins":
        return cls.between(ranks, _end_equal_width(ranks.ordered, bins))

    @classmethod
    def of_equal_width_with_variance(cls, ranks: Ranks, bins: int = BINS) -> "Bins":
        c = ranks.outcomes.levels
        sums = sum_between(ranks.sum_over_levels(c * (1 - c)), _end_equal_width(c, bins))
        return cls.of_equal_width(ranks, bins)._replace(variance=sums / ranks.outcomes.unit)

    @classmethod
    def of_equal_count(cls, ranks: Ranks, bins: int = BINS) -> "Bins":
        """Bins that split the samples into equal counts, where ties let them."""
        last = ranks.n[:, None] - 1
        at = last * equal_width_edges(bins)[1:-1]
        rank = np.floor(at).astype(np.int32)
        below, above = (
            ranks.at_rank(r) for r in (rank, np.minimum(rank + 1, last.astype(np.int32)))
        )
        edges = interpolate(below, above, at - rank)
        # Closed on the left, so that values saturated at 1, however many, have the last bin to
        # themselves; closed on the right, they would be mixed with the values just below.
        return cls.between(ranks, _end_at(ranks.ordered, edges, "left"))

    @classmethod
    def of_cells(cls, ranks: Ranks) -> "Bins":
        """The cells of the fine grid."""
        cells = assign_cells(ranks.ordered.astype(np.float64, copy=False))
        return cls.between(ranks, np.searchsorted(cells, np.arange(1, CELLS + 1))[None])


def _end_equal_width(ordered: Confidence, bins: int) -> Ends:
    return _end_at(ordered, equal_width_edges(bins)[None, 1:-1], "right")


def _end_at(
    ordered: Confidence, edges: Float[np.ndarray, "_ edges"], side: Literal["left", "right"]
) -> Ends:
    """Where bins end that have these inner edges."""
    # In the type of the confidences, because NumPy would convert all of them to that of the
    # edges. Rounded towards the side on which they are closed, edges split the same samples.
    own = edges.astype(ordered.dtype)
    off = own > edges if side == "right" else own < edges
    own = np.where(off, np.nextafter(own, own.dtype.type(side == "left")), own)
    ends = np.searchsorted(ordered, own, side=side)
    return np.append(ends, np.full((len(ends), 1), len(ordered)), -1)


def interpolate(below: np.ndarray, above: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Between two neighbours of a quantile, rounded as np.quantile does."""
    # An edge that equals a level decides on which side it lies.
    between = above - below
    return np.where(share < 0.5, below + between * share, above - between * (1 - share))


class ClassBins(NamedTuple):
    """Probability minus truth in equal-width bins of every class, probabilities of 0 left out."""

    n: Values
    excess: Float[np.ndarray, "b c bins"]

    @classmethod
    def of(cls, ranks: Ranks, bins: int = BINS) -> "ClassBins":
        p, labels = ranks.outcomes.distribution
        n, c = p.shape
        if ranks.counts is not None:
            lowest, above = ranks.outcomes.class_excess(bins)
            excess = (above @ ranks.float_counts.T).reshape(c, bins, -1).transpose(2, 0, 1)
            excess[..., 0] += ranks.float_counts @ lowest
            return cls(ranks.n, excess)
        excess = np.zeros((1, c * bins))
        rows = max(1, AT_ONCE // c)  # 50,000 x 1,000 at once would need gigabytes
        for start in range(0, n, rows):
            q, y = p[start : start + rows], labels[start : start + rows, None]
            weights = np.where(q > 0, q - (y == np.arange(c)), 0)
            group = np.arange(c) * bins + assign_equal_width(q, bins)
            excess += np.bincount(group.ravel(), weights.ravel(), c * bins)
        return cls(ranks.n, excess.reshape(1, c, bins))


class Sums(NamedTuple):
    """Sums over samples of numbers that each has."""

    n: Values
    total: Float[np.ndarray, "b k"]

    @classmethod
    def of(cls, ranks: Ranks, *values: Float[np.ndarray, " n"]) -> "Sums":
        return cls(ranks.n, np.stack([ranks.total(x) for x in values], -1))

    @classmethod
    def of_loss(
        cls, ranks: Ranks, loss: Callable[[np.ndarray, np.ndarray], np.ndarray], inputs: Inputs
    ) -> "Sums":
        """The sum of a loss of each sample."""
        outcomes = ranks.outcomes
        if ranks.counts is not None:
            return cls.of(ranks, loss(*outcomes.inputs(inputs)))
        starts = range(0, len(outcomes.correct), BLOCK)
        total = sum(loss(*outcomes[x : x + BLOCK].inputs(inputs)).sum() for x in starts)
        return cls(ranks.n, np.array([[total]]))

    @classmethod
    def of_outcomes(cls, ranks: Ranks) -> "Sums":
        """How many are right, and the confidence of wrong and of right samples."""
        c, correct = ranks.outcomes.inputs("confidence")
        return cls.of(ranks, 1.0 * correct, c * ~correct, c * correct)


def add(one: State, other: State) -> State:
    """The state of the samples of both."""
    return type(one)(*map(np.add, one, other))
