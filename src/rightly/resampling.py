"""Bootstrap: resamples of a data set, and the interval that resampled values give."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

LEVEL = 0.95
AT_ONCE = 2**19  # numbers in work at a time, so that they stay in a cache

Values = Float[np.ndarray, " b"]
Resamples = Sequence[UInt8[np.ndarray, "_ n"]]


class Interval(NamedTuple):
    """The two ends of an approximate 95 % confidence interval."""

    low: float
    high: float


def draw_resamples(
    n: int, resamples: int = 1000, seed: int = 0, strata: Int[np.ndarray, " n"] | None = None
) -> Resamples:
    """How often each of n samples is drawn in each resample, some resamples at a time.

    With strata, every resample keeps the number of samples in each.
    """
    if n < 1 or resamples < 1:
        raise ValueError(f"n and resamples must be at least 1, got {n} and {resamples}")
    rng = np.random.default_rng(seed)
    by_stratum = np.argsort(np.zeros(n) if strata is None else strata, kind="stable")
    _, size = np.unique(np.zeros(n) if strata is None else strata, return_counts=True)
    start, width = (np.repeat(x, size) for x in (size.cumsum() - size, size))
    blocks, at_once = [], max(1, AT_ONCE // n)
    for done in range(0, resamples, at_once):
        b = min(at_once, resamples - done)
        drawn = by_stratum[start + (rng.random((b, n)) * width).astype(np.int64)]
        flat = drawn + n * np.arange(b)[:, None]
        # One sample in 1e300 is drawn more than 255 times.
        counts = np.bincount(flat.ravel(), minlength=b * n).reshape(b, n)
        blocks.append(counts.astype(np.uint8))
    return blocks


def interval(
    value: float, resampled: Values, limits: tuple[float, float] = (-np.inf, np.inf)
) -> Interval:
    """The spread of the resampled values, around the measured one, clipped to limits."""
    defined = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(defined):
        return Interval(np.nan, np.nan)
    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(defined, [tail, 0.5, 1 - tail])
    ends = np.clip([value + low - middle, value + high - middle], *limits)
    return Interval(float(ends[0]), float(ends[1]))
