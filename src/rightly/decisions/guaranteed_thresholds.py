"""Thresholds with a promise: the error among accepted predictions, kept with a given probability.

Learn then Test (Angelopoulos et al., 2021): each threshold is the null hypothesis "more than
`max_error` of what it accepts is wrong", tested by the exact binomial tail. Thresholds are ranks
of confidence, in an order that no label has a say in: the fewest samples that could pass with
0, 1, 2, ... errors, down to all. The first is tested at (almost) all of 1 - assurance and hands its
level on when it passes, like each after it; what rounding to whole errors leaves over is shared by
ranks that double, at which testing goes on where it broke off (the fallback procedure: Wiens,
2003). The levels handed out sum to 1 - assurance, so that the promise is kept with probability
`assurance` wherever errors get rarer as confidence rises.
"""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, overload

import numpy as np

from rightly.checks import check_confidence, check_fraction, check_groups
from rightly.decisions.binomial_tests import (
    binomial_tail,
    fewest_samples,
    most_errors,
    upper_bound,
)
from rightly.shapes import AnyArray

POWER = 0.8  # probability with which `needed` samples would pass
MOST_NEEDED = 10_000_000
MOST_RANKS = 2_000  # below one in two hundred apart: finer, nothing is gained


@dataclass(frozen=True)
class Threshold:
    """The confidence from which on to accept, and what was found among the accepted samples."""

    value: float | None  # None where nothing can be promised
    accepted: int  # samples at or above it
    error: float  # share of them that is wrong; nan where there are none
    error_high: float  # exact upper bound of that share at this threshold; at most max_error
    needed: int | None  # where there is no value: about how many samples would do
    reason: str  # why there is no value

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which has no nan."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


@overload
def threshold(
    confidence: AnyArray,
    correct: AnyArray,
    *,
    max_error: float = ...,
    assurance: float = ...,
    groups: None = ...,
    simultaneous: bool = ...,
) -> Threshold: ...
@overload
def threshold(
    confidence: AnyArray,
    correct: AnyArray,
    *,
    max_error: float = ...,
    assurance: float = ...,
    groups: AnyArray,
    simultaneous: bool = ...,
) -> dict[Any, Threshold]: ...
def threshold(
    confidence: AnyArray,
    correct: AnyArray,
    *,
    max_error: float = 0.02,
    assurance: float = 0.95,
    groups: AnyArray | None = None,
    simultaneous: bool = False,
) -> Threshold | dict[Any, Threshold]:
    """The lowest threshold whose accepted predictions are wrong at most this often, surely.

    With probability `assurance` over the samples, at most `max_error` of what the threshold accepts
    in data like these is wrong. The samples must not have been fitted on. With `groups`, such as
    predicted classes, there is one threshold a group, and the promise holds for each by itself, or
    with `simultaneous` for all at once.

    >>> threshold(np.linspace(0.5, 1, 149), np.full(149, True)).accepted
    149
    >>> threshold(np.linspace(0.5, 1, 100), np.full(100, True)).reason
    'not with these 100 samples; about 149 would do'
    """
    c, a = check_confidence(confidence, correct)
    check_fraction("max_error", max_error)
    check_fraction("assurance", assurance)
    level = 1 - float(assurance)
    if groups is None:
        if simultaneous:
            raise ValueError("simultaneous must come with groups: pass groups=, one a sample")
        return _find(c, a, float(max_error), level)
    names, number = check_groups(groups, len(c))
    if simultaneous:
        level /= len(names)
    return {
        name: _find(c[number == k], a[number == k], float(max_error), level)
        for k, name in enumerate(names)
    }


def _find(c: np.ndarray, a: np.ndarray, max_error: float, level: float) -> Threshold:
    n = len(c)
    order = np.argsort(-c, kind="stable")
    ordered, wrong = c[order], np.cumsum(~a[order])
    ranks, levels = _list_ranks(n, max_error, level)
    # Samples of one confidence are accepted together.
    counts = np.searchsorted(-ordered, -ordered[ranks - 1], side="right")
    p = binomial_tail(wrong[counts - 1], counts, max_error)
    last, inherited = None, 0.0
    for k in range(len(ranks)):
        at = inherited + levels[k]
        inherited = at if p[k] <= at else 0.0
        last = k if inherited else last
    if last is None:
        needed, reason = _count_needed(wrong, max_error, level)
        return Threshold(None, 0, math.nan, math.nan, needed, reason)
    count = int(counts[last])
    errors = int(wrong[count - 1])
    high = upper_bound(errors, count, level)
    return Threshold(float(ordered[count - 1]), count, errors / count, high, None, "")


def count_without_error(max_error: float, level: float) -> int:
    """The fewest samples that pass at this level if none of them is wrong: 149 for 2 % at 5 %."""
    count = max(math.floor(math.log(level) / math.log1p(-max_error)), 1)
    while (1 - max_error) ** count > level:
        count += 1
    return count


@lru_cache(maxsize=64)
def _list_ranks(n: int, max_error: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The ranks to be tested, and the level that each starts with."""
    starts, shares = _list_starts(n, max_error, level)
    if not len(starts):
        return starts, shares
    most = int(max_error * n)
    errors = np.unique(np.geomspace(1, max(most, 1), MOST_RANKS).astype(np.int64))
    ranks = fewest_samples(errors, max_error, shares[0])
    ranks = np.union1d(starts, ranks[ranks <= n])
    levels = np.zeros(len(ranks))
    levels[np.searchsorted(ranks, starts)] = shares
    return ranks, levels


@lru_cache(maxsize=1024)
def _list_starts(n: int, max_error: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The first rank, doubles of it and all, with their shares of the level."""
    first = count_without_error(max_error, level)
    if n < first:
        return np.zeros(0, np.int64), np.zeros(0)
    doubles = first * 2 ** np.arange(int(math.log2(n / first)) + 1)
    starts = np.union1d(doubles[doubles <= n], [n])
    size = float((1 - max_error) ** first)  # what the first test takes of the level, exactly
    later = len(starts) - 1
    shares = np.full(len(starts), max(level - size, 0.0) / max(later, 1))
    shares[0] = size if later else level
    return starts, shares


@lru_cache(maxsize=1024)
def _list_allowed(n: int, max_error: float, level: float) -> np.ndarray:
    """The most errors with which the starts pass."""
    starts, shares = _list_starts(n, max_error, level)
    return most_errors(starts, max_error, shares)


def _count_needed(wrong: np.ndarray, max_error: float, level: float) -> tuple[int | None, str]:
    """The fewest samples with this error curve that would pass with probability POWER, and why."""
    n = len(wrong)
    opening = f"not with these {n:,} sample{'' if n == 1 else 's'}"
    # Fewer than in which one error is within max_error tell nothing about it.
    least = math.ceil(1 / max_error)
    if n < least and wrong[-1]:
        return None, (
            f"{opening}, which are too few to tell how many would do: of fewer than {least:,} not "
            f"one may be wrong where {max_error:.4g} is the most allowed, and {int(wrong[-1])} are"
        )
    least = min(n, least)
    curve = wrong / np.arange(1, n + 1)
    lowest = float(curve[least - 1 :].min())
    if lowest > max_error:
        return None, (
            f"{opening}, nor with more like them: at every threshold that accepts {least:,} or "
            f"more, at least {lowest:.2%} of the accepted are wrong, and {max_error:.4g} is the "
            "most allowed"
        )

    def passes(count: int) -> bool:
        starts, _ = _list_starts(count, max_error, level)
        # As deep as a rank may by chance lie: by a standard deviation.
        deep = starts + np.sqrt(starts * (1 - starts / count))
        ranks = np.clip(np.ceil(deep * (n / count)).astype(np.int64), least, n)
        allowed = _list_allowed(count, max_error, level)
        power = binomial_tail(allowed, starts, curve[ranks - 1])
        return bool((power >= POWER).any())

    low = max(n, count_without_error(max_error, level) - 1)
    high = low + 1
    most = max(high, MOST_NEEDED)
    if not passes(most):
        return None, (
            f"{opening}, nor with {most:,} like them: errors come too close to "
            f"{max_error:.4g} of the accepted at every threshold"
        )
    while not passes(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high, f"{opening}; about {_round_up(high):,} would do"


def _round_up(count: int) -> int:
    """To three digits."""
    unit = 10 ** max(len(str(count)) - 3, 0)
    return -(-count // unit) * unit
