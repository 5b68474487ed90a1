"""Exact tests of a share by the binomial distribution, and the counts at which they pass."""

from collections.abc import Callable

import numpy as np


def binomial_tail(errors: np.ndarray, n: np.ndarray, share: float | np.ndarray) -> np.ndarray:
    """Probability of at most so many errors among n, each with probability `share`."""
    from scipy.special import bdtr

    tail: np.ndarray = np.where(errors < 0, 0.0, bdtr(np.maximum(errors, 0), n, share))
    return tail


def upper_bound(errors: int, n: int, level: float) -> float:
    """The largest share of which so few errors among n have this probability, one-sided."""
    from scipy.special import betaincinv

    return float(betaincinv(errors + 1, n - errors, 1 - level)) if errors < n else 1.0


def fewest_samples(errors: np.ndarray, max_error: float, level: float) -> np.ndarray:
    """The fewest samples that pass with so many errors."""
    return _first_true(lambda n: binomial_tail(errors, n, max_error) <= level, errors)


def most_errors(n: np.ndarray, max_error: float, levels: np.ndarray) -> np.ndarray:
    """The most errors with which n samples pass; -1 where not even none do."""
    fails = _first_true(lambda e: binomial_tail(e, n, max_error) > levels, np.full(len(n), -1))
    return fails - 1


def _first_true(holds: Callable[[np.ndarray], np.ndarray], low: np.ndarray) -> np.ndarray:
    """The smallest whole numbers above `low` from which on it holds, by bisection."""
    step = np.ones_like(low)
    while not (done := holds(low + step)).all():
        step = np.where(done, step, 2 * step)
    high = low + step
    while (high - low > 1).any():
        middle = (low + high) // 2
        done = holds(middle)
        low, high = np.where(done, low, middle), np.where(done, middle, high)
    return high
