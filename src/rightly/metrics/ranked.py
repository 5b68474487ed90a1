"""Samples sorted once by confidence, and the metrics that one sweep over them gives.

A confidence from 0 to 1 has the order of its bits, and its sign bit is free: shifted by one, with
correctness as the last bit, one unsigned number holds the pair. Sorting those costs no more than
sorting confidence alone, where an order of indices takes five to eight times as long.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt32, UInt64

from rightly.metrics import binning
from rightly.shapes import Correct

BLOCK = 2**14  # samples in work at a time, so that they stay in a cache
GROUP = 64  # samples between two places at which sums are kept; divides BLOCK

Keys = UInt32[np.ndarray, "*n"] | UInt64[np.ndarray, "*n"]
Positions = Int[np.ndarray, " k"]
At = Float64[np.ndarray, " k"]
Between = Float64[np.ndarray, " parts"]
Real = Float32[np.ndarray, "*n"] | Float64[np.ndarray, "*n"]


class Sweep(NamedTuple):
    """What a sweep from the least confident sample up adds up."""

    excess: Float64[np.ndarray, " groups"]  # confidence minus correctness before each group
    squares: float  # of the excess of each sample
    right: int
    pairs_won_twice: int  # of a right and a wrong sample: 2 each, 1 where they are tied


class _TieCounter:
    """Counts pairs of a right and a wrong sample of one confidence, block by block.

    Where neighbouring keys differ a run of equal ones ends. Where only the last bit does, the run
    holds the wrong samples of a level and the next run its right ones.
    """

    def __init__(self) -> None:
        self.pairs = 0
        # The last two ends before a block, and whether the run after the later is of its level.
        self.ends, self.is_split = (-1, -1), False

    def add(self, differences: Keys, start: int) -> None:
        """Takes a block's keys, each xor the next one."""
        if not self.is_split and differences.min() > 1:  # no ties at all
            last = start + len(differences) - 1
            self.ends = (last - 1 if len(differences) > 1 else self.ends[1], last)
            return
        places = np.flatnonzero(differences != 0)
        if not len(places):
            return
        splits = differences[places] == 1
        run = places[1:] - places[:-1]
        inner = np.flatnonzero(splits[1:-1])
        self.pairs += int((run[inner] * run[inner + 1]).sum())
        # The two ends whose runs reach into the blocks before.
        (earlier, last), first = self.ends, int(places[0]) + start
        self.pairs += self.is_split * (last - earlier) * (first - last)
        if len(places) > 1:
            self.pairs += bool(splits[0]) * (first - last) * int(run[0])
            last = int(places[-2]) + start
        self.ends, self.is_split = (last, int(places[-1]) + start), bool(splits[-1])


@dataclass(frozen=True, eq=False)
class RankedOutcomes:
    """Confidence and correctness of n samples from the least confident up, wrong before right."""

    keys: Keys

    def __len__(self) -> int:
        return len(self.keys)

    def confidence_at(self, positions: Positions) -> At:
        """The confidence of the samples at these positions."""
        return _split(self.keys[positions])[0].astype(np.float64)

    def count_up_to(self, values: At) -> Positions:
        """How many samples have at most these confidences."""
        own = values.astype(self._float)
        # Rounded down, so that a value between two of the type's numbers counts the lower one.
        own = np.where(own > values, np.nextafter(own, self._float(0)), own)
        return np.searchsorted(self.keys, _join(own, np.ones(len(own), dtype=bool)), side="right")

    def count_below(self, values: At) -> Positions:
        """How many samples have less than these confidences."""
        own = values.astype(self._float)
        own = np.where(own < values, np.nextafter(own, self._float(1)), own)
        return np.searchsorted(self.keys, _join(own, np.zeros(len(own), dtype=bool)))

    def excess_before(self, positions: Positions) -> At:
        """Confidence minus correctness, summed over all samples before these positions."""
        group, place = np.divmod(positions, GROUP)
        inside = np.arange(GROUP) < place[:, None]
        return self.sweep.excess[group] + np.where(inside, self._excess_of(group), 0).sum(-1)

    def excess_between(self, inner: Positions) -> Between:
        """The same between these ascending positions, up to the first and from the last."""
        return np.diff(self.excess_before(np.concatenate([[0], inner, [len(self)]])))

    @cached_property
    def sweep(self) -> Sweep:
        """Sums of all samples, in one pass."""
        n, one = len(self), self.keys.dtype.type(1)
        # Arrays that are used again: to get fresh ones from the system would cost more than the
        # arithmetic does.
        shifted, bit = (np.empty(BLOCK, self.keys.dtype) for _ in range(2))
        excess, right = (np.empty(BLOCK) for _ in range(2))
        place, starts = np.arange(float(BLOCK)), np.arange(0, BLOCK, GROUP)
        of_groups = np.zeros(-(-n // GROUP) + 1)
        squares, right_total, right_places = 0.0, 0, 0
        ties = _TieCounter()
        for start in range(0, n, BLOCK):
            keys = self.keys[start : start + BLOCK]
            m = len(keys)
            np.right_shift(keys, one, out=shifted[:m])
            np.bitwise_and(keys, one, out=bit[:m])
            np.copyto(right[:m], bit[:m])
            np.copyto(excess[:m], shifted[:m].view(self._float))
            np.subtract(excess[:m], right[:m], out=excess[:m])
            first = start // GROUP + 1
            sums = np.add.reduceat(excess[:m], starts[: -(-m // GROUP)])
            of_groups[first : first + len(sums)] = sums
            # einsum, because a dot product of this length would wake the threads of BLAS.
            squares += float(np.einsum("i,i->", excess[:m], excess[:m]))
            right_here = int(right[:m].sum())
            right_places += int(np.einsum("i,i->", right[:m], place[:m])) + start * right_here
            right_total += right_here
            following = self.keys[start + 1 : start + m + 1]
            shifted[m - 1] = 2  # after the last sample of all, another level
            np.bitwise_xor(keys[: len(following)], following, out=shifted[: len(following)])
            ties.add(shifted[:m], start)
        # Wrong before right: each right sample beats all wrong ones before it, ties included.
        won = right_places - right_total * (right_total - 1) // 2
        return Sweep(of_groups.cumsum(), squares, right_total, 2 * won - ties.pairs)

    def largest_excess(self) -> float:
        """The largest absolute excess of all samples up to a level.

        Inside a level samples have no order, so that the sum is read only at its end.
        """
        before = abs(self.sweep.excess)
        # A sample changes the sum by at most 1: between the two ends of a group it stays below.
        bound = (before[1:] + before[:-1] + GROUP) / 2
        largest, at_once = 0.0, min(256, len(bound))
        groups = np.argpartition(bound, -at_once)[-at_once:]
        while len(groups):
            largest = max(largest, self._largest_excess_in(groups[:at_once]))
            bound[groups[:at_once]] = 0
            groups = np.flatnonzero(bound > largest)
        return largest

    def _largest_excess_in(self, groups: Positions) -> float:
        places = groups[:, None] * GROUP + np.arange(GROUP)
        keys, following = (self.keys[np.minimum(places + step, len(self) - 1)] for step in (0, 1))
        is_last = ((keys ^ following) > 1) | (places >= len(self) - 1)
        sums = self.sweep.excess[groups, None] + self._excess_of(groups).cumsum(-1)
        return float(np.where(is_last, abs(sums), 0).max())

    def _excess_of(self, groups: Positions) -> Float64[np.ndarray, "k group"]:
        """Confidence minus correctness of each sample of some groups; 0 after the last sample."""
        places = groups[:, None] * GROUP + np.arange(GROUP)
        confidence, right = _split(self.keys[np.minimum(places, len(self) - 1)])
        return np.where(places < len(self), confidence.astype(np.float64) - right, 0)

    @property
    def _float(self) -> type[np.float32] | type[np.float64]:
        return np.float32 if self.keys.dtype == np.uint32 else np.float64


def rank(confidence: Real, correct: Correct) -> RankedOutcomes:
    """Outcomes sorted by confidence; float32 stays so, and sorts twice as fast."""
    keys = _join(confidence, correct)
    keys.sort()
    return RankedOutcomes(keys)


def _join(confidence: Real, correct: Correct) -> Keys:
    unsigned = np.uint32 if confidence.dtype == np.float32 else np.uint64
    # -0.0 loses its sign here, and equals 0.
    keys = np.left_shift(confidence.view(unsigned), unsigned(1))
    keys |= correct
    return keys


def _split(keys: Keys) -> tuple[Real, Keys]:
    one = keys.dtype.type(1)
    return (keys >> one).view(np.float32 if keys.dtype == np.uint32 else np.float64), keys & one


def ece(ranked: RankedOutcomes) -> float:
    inner = ranked.count_up_to(binning.equal_width_edges(binning.BINS)[1:-1])
    return abs(ranked.excess_between(inner)).sum() / len(ranked)


def ece_l2(ranked: RankedOutcomes) -> float:
    inner = ranked.count_up_to(binning.equal_width_edges(binning.BINS)[1:-1])
    count = np.diff(inner, prepend=0, append=len(ranked))
    squares = ranked.excess_between(inner) ** 2 / np.maximum(count, 1)
    return np.sqrt(squares.sum() / len(ranked))


def mce(ranked: RankedOutcomes) -> float:
    inner = ranked.count_up_to(binning.equal_width_edges(binning.BINS)[1:-1])
    count = np.diff(inner, prepend=0, append=len(ranked))
    return (abs(ranked.excess_between(inner))[count > 0] / count[count > 0]).max()


def ace(ranked: RankedOutcomes) -> float:
    at = (len(ranked) - 1) * binning.equal_width_edges(binning.BINS)[1:-1]
    first = np.floor(at).astype(np.int64)
    below, above = (
        ranked.confidence_at(np.minimum(place, len(ranked) - 1)) for place in (first, first + 1)
    )
    inner = ranked.count_below(binning.interpolate(below, above, at - first))
    return abs(ranked.excess_between(inner)).sum() / len(ranked)


def brier(ranked: RankedOutcomes) -> float:
    return ranked.sweep.squares / len(ranked)


def ks(ranked: RankedOutcomes) -> float:
    return ranked.largest_excess() / len(ranked)


def auroc(ranked: RankedOutcomes) -> float:
    right = ranked.sweep.right
    pairs = right * (len(ranked) - right)
    # Whole numbers up to the division, which rounds once.
    return ranked.sweep.pairs_won_twice / (2 * pairs) if pairs else np.nan


def augrc(ranked: RankedOutcomes) -> float:
    n, right = len(ranked), ranked.sweep.right
    pairs_lost_twice = 2 * right * (n - right) - ranked.sweep.pairs_won_twice
    return (pairs_lost_twice + (n - right) ** 2) / (2 * n * n)
