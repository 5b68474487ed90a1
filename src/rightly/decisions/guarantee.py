"""Thresholds with a guaranteed accuracy (Learn then Test), and exact binomial intervals.

Learn then Test (Angelopoulos et al., 2021): each threshold is the null hypothesis "more than
`max_error` of what it accepts is wrong", tested by the exact binomial tail. Thresholds are ranks
of confidence, in an order that does not depend on the labels: the fewest samples that could pass
with 0, 1, 2, ... errors, down to all. The first is tested at (almost) all of `delta` and hands its
level on when it passes, like each after it; what rounding to whole errors leaves over is shared by
ranks that double, at which testing resumes where it stopped (the fallback procedure: Wiens, 2003).
The levels sum to `delta`, so that the guarantee holds with probability 1 - delta wherever errors
get rarer as confidence rises.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

POWER = 0.8  # probability with which `needed` samples would pass
MAX_NEEDED = 10_000_000
MAX_RANKS = 2_000  # neighbours differ by less than one in two hundred: finer, nothing is gained


class GuaranteedThreshold(NamedTuple):
    """The lowest threshold that passes; without one, the reason and the samples needed."""

    threshold: float | None
    error_bound: float | None = None  # exact upper bound of the error among the accepted
    needed: int | None = None
    reason: str = ""


def find_threshold(
    c: np.ndarray, a: np.ndarray, max_error: float, delta: float
) -> GuaranteedThreshold:
    """Lowest threshold with at most `max_error` among the accepted, with probability 1 - delta.

    `c` and `a` are checked confidence and correctness of samples held out of the fit.
    """
    n = len(c)
    order = np.argsort(-c, kind="stable")
    ordered, wrong = c[order], np.cumsum(~a[order])
    ranks, levels = _list_ranks(n, max_error, delta)
    # Samples of one confidence are accepted together.
    counts = np.searchsorted(-ordered, -ordered[ranks - 1], side="right")
    p = binomial_tail(wrong[counts - 1], counts, max_error)
    last, inherited = None, 0.0
    for k in range(len(ranks)):
        at = inherited + levels[k]
        inherited = at if p[k] <= at else 0.0
        last = k if inherited else last
    if last is None:
        needed, reason = _count_needed(wrong, max_error, delta)
        return GuaranteedThreshold(None, needed=needed, reason=reason)
    count = int(counts[last])
    bound = upper_bound(int(wrong[count - 1]), count, delta)
    return GuaranteedThreshold(float(ordered[count - 1]), bound)


def exact_interval(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion, `right` of n (Clopper and Pearson, 1934).

    >>> tuple(round(end, 4) for end in exact_interval(8, 10))
    (0.4439, 0.9748)
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(right, n - right + 1, tail)) if right else 0.0
    high = float(betaincinv(right + 1, n - right, 1 - tail)) if right < n else 1.0
    return low, high


def upper_bound(errors: int, n: int, delta: float) -> float:
    """Exact one-sided upper bound of an error rate at level 1 - delta."""
    from scipy.special import betaincinv

    return float(betaincinv(errors + 1, n - errors, 1 - delta)) if errors < n else 1.0


def binomial_tail(errors: np.ndarray, n: np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """Probability of at most this number of errors among n, each with probability `rate`."""
    from scipy.special import bdtr

    tail: np.ndarray = np.where(errors < 0, 0.0, bdtr(np.maximum(errors, 0), n, rate))
    return tail


def min_samples_without_error(max_error: float, delta: float) -> int:
    """Fewest samples that pass if none of them is wrong: 149 for 2 % at delta = 5 %."""
    count = max(math.floor(math.log(delta) / math.log1p(-max_error)), 1)
    while (1 - max_error) ** count > delta:
        count += 1
    return count


def _min_samples(errors: np.ndarray, max_error: float, level: float) -> np.ndarray:
    """Fewest samples that pass with each number of errors."""
    return _first_true(lambda n: binomial_tail(errors, n, max_error) <= level, errors)


def _max_errors(n: np.ndarray, max_error: float, levels: np.ndarray) -> np.ndarray:
    """Most errors with which n samples pass; -1 where they fail even without an error."""
    fails = _first_true(lambda e: binomial_tail(e, n, max_error) > levels, np.full(len(n), -1))
    return fails - 1


def _first_true(holds: Callable[[np.ndarray], np.ndarray], low: np.ndarray) -> np.ndarray:
    """Smallest whole numbers above `low` at which a monotone condition holds, by bisection."""
    step = np.ones_like(low)
    while not (done := holds(low + step)).all():
        step = np.where(done, step, 2 * step)
    high = low + step
    while (high - low > 1).any():
        middle = (low + high) // 2
        done = holds(middle)
        low, high = np.where(done, low, middle), np.where(done, middle, high)
    return high


@lru_cache(maxsize=64)
def _list_ranks(n: int, max_error: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Ranks to test, and the level that each starts with."""
    starts, shares = _list_starts(n, max_error, delta)
    if not len(starts):
        return starts, shares
    errors = np.unique(np.geomspace(1, max(int(max_error * n), 1), MAX_RANKS).astype(np.int64))
    ranks = _min_samples(errors, max_error, shares[0])
    ranks = np.union1d(starts, ranks[ranks <= n])
    levels = np.zeros(len(ranks))
    levels[np.searchsorted(ranks, starts)] = shares
    return ranks, levels


@lru_cache(maxsize=1024)
def _list_starts(n: int, max_error: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The first rank, its doubles and n, with their shares of delta."""
    first = min_samples_without_error(max_error, delta)
    if n < first:
        return np.zeros(0, np.int64), np.zeros(0)
    doubles = first * 2 ** np.arange(int(math.log2(n / first)) + 1)
    starts = np.union1d(doubles[doubles <= n], [n])
    size = float((1 - max_error) ** first)  # what the first test uses of delta, exactly
    later = len(starts) - 1
    shares = np.full(len(starts), max(delta - size, 0.0) / max(later, 1))
    shares[0] = size if later else delta
    return starts, shares


@lru_cache(maxsize=1024)
def _list_allowed(n: int, max_error: float, delta: float) -> np.ndarray:
    """Most errors with which the starts pass."""
    starts, shares = _list_starts(n, max_error, delta)
    return _max_errors(starts, max_error, shares)


def _count_needed(wrong: np.ndarray, max_error: float, delta: float) -> tuple[int | None, str]:
    """Fewest samples with this error curve that pass with probability POWER, and the reason."""
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
        starts, _ = _list_starts(count, max_error, delta)
        # As deep as a rank may by chance lie: by a standard deviation.
        deep = starts + np.sqrt(starts * (1 - starts / count))
        ranks = np.clip(np.ceil(deep * (n / count)).astype(np.int64), least, n)
        allowed = _list_allowed(count, max_error, delta)
        power = binomial_tail(allowed, starts, curve[ranks - 1])
        return bool((power >= POWER).any())

    low = max(n, min_samples_without_error(max_error, delta) - 1)
    high = low + 1
    most = max(high, MAX_NEEDED)
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
