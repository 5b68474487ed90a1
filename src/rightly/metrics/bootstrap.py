"""How far a metric would move on another test set of this size, and which differences are real.

Samples are redrawn with replacement, from right and wrong ones alike: to hold their shares fixed
would hide that accuracy is itself uncertain, and 95 % intervals of the Brier score would cover two
times in three. An interval has the spread of the resampled values around the measured one: binned
errors grow with every redraw, so that plain percentiles often lie above the value they belong to.
`python -m benchmarks.speed.intervals --coverage` measures both. Every calibrator sees the same
resamples, which makes differences paired.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

from rightly.metrics.definitions import METRICS
from rightly.metrics.resampled import WEIGHTED, Outcomes, Replicates, bin_ends
from rightly.shapes import Confidence

LEVEL = 0.95
FEW = 200  # resamples of a metric that has no weighted form, which takes a call for each
AT_ONCE = 2**19  # numbers in work at a time, so that they stay in a cache

RANGES = {"nll": (0.0, np.inf), "confidence_gap": (-1.0, 1.0)}  # of the others: 0 to 1

Resamples = Sequence[UInt8[np.ndarray, "_ n"]]
Values = Float[np.ndarray, " b"]


class Interval(NamedTuple):
    low: float
    high: float


def draw(
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
    parts, at_once = [], max(1, AT_ONCE // n)
    for begun in range(0, resamples, at_once):
        b = min(at_once, resamples - begun)
        drawn = by_stratum[start + (rng.random((b, n)) * width).astype(np.int64)]
        flat = drawn + n * np.arange(b)[:, None]
        # One sample in 1e300 is drawn more than 255 times.
        parts.append(np.bincount(flat.ravel(), minlength=b * n).reshape(b, n).astype(np.uint8))
    return parts


def replicates(scored: Outcomes, metrics: Sequence[str], resamples: Resamples) -> dict[str, Values]:
    """The chosen metrics of every resample; those without a weighted form of the first FEW."""
    found: dict[str, list[Values]] = {name: [] for name in metrics}
    for counts in resamples:
        weighted = Replicates(scored, counts)
        for name in metrics:
            if name in WEIGHTED:
                found[name].append(WEIGHTED[name](weighted))
            elif sum(map(len, found[name])) < FEW:
                found[name].append(_one_by_one(scored, name, counts))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _one_by_one(scored: Outcomes, name: str, counts: UInt8[np.ndarray, "b n"]) -> Values:
    metric = METRICS[name]
    first, second = (
        (scored.confidence, scored.correct) if metric.takes == "confidence" else scored.distribution
    )
    rows = (np.repeat(np.arange(len(count)), count) for count in counts)
    return np.array([metric.measure(first[row], second[row]) for row in rows])


def interval(
    value: float, resampled: Values, within: tuple[float, float] = (-np.inf, np.inf)
) -> Interval:
    """The spread of the resampled values, around the measured one."""
    known = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(known):
        return Interval(np.nan, np.nan)
    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(known, [tail, 0.5, 1 - tail])
    ends = np.clip([value + low - middle, value + high - middle], *within)
    return Interval(float(ends[0]), float(ends[1]))


def range_of(metric: str) -> tuple[float, float]:
    """The least and the largest value that a metric can take."""
    return RANGES.get(metric, (0.0, 1.0))


def paired_p(difference: float, resampled: Values) -> float:
    """Two-sided p value of a difference, from the same difference in every resample.

    The least level at which the difference's own `interval` still holds 0, so that the two never
    contradict each other.
    """
    known = resampled[~np.isnan(resampled)]
    if np.isnan(difference) or not len(known):
        return float("nan")
    if abs(difference) < 1e-12:  # methods that are equal up to rounding do not differ
        return 1.0
    strays = (known - np.median(known)) * -np.sign(difference)
    return float(min(1.0, 2 * (1 + (strays >= abs(difference)).sum()) / (1 + len(known))))


def least_resamples(tests: int, level: float) -> int:
    """How many resamples the smallest of that many p values needs to pass Holm's correction."""
    return math.ceil(2 * tests / level)


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """p values corrected for how many there are (Holm, 1979); nan stays nan and counts for none."""
    known = sorted((value, name) for name, value in p.items() if not np.isnan(value))
    corrected, largest = dict(p), 0.0
    for rank, (value, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[name] = largest
    return corrected


class NoiseFloor(NamedTuple):
    """The ECE that confidences would score if they were exactly right."""

    mean: float
    high: float  # 95 % lie below


def noise_floor(confidence: Confidence, draws: int = 1000, seed: int = 0) -> NoiseFloor:
    """ECE with correctness drawn anew from the confidences themselves (25 bins)."""
    rng = np.random.default_rng(seed)
    c = np.sort(confidence)
    ends = bin_ends(c)
    expected = np.diff(np.append(0.0, c.cumsum())[ends])
    found, at_once = [], max(1, AT_ONCE // len(c))
    for begun in range(0, draws, at_once):
        b = min(at_once, draws - begun)
        right = (rng.random((b, len(c)), dtype=np.float32) < c).cumsum(-1, dtype=np.int32)
        up_to = np.where(ends > 0, right[:, ends - 1], 0)
        found.append(abs(np.diff(up_to, axis=-1) - expected).sum(-1) / len(c))
    ece = np.concatenate(found)
    return NoiseFloor(float(ece.mean()), float(np.quantile(ece, LEVEL)))
