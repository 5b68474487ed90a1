"""Confidence intervals of metrics by bootstrap, and which differences are real.

An interval is an approximate 95 % confidence interval for the metric's value in the population
that the test set was drawn from; for errors in bins, for their expected value at this size.
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

from rightly.metrics.definitions import METRICS, Metric, mean_gap
from rightly.metrics.states import Bins, Counts, Outcomes, Ranks, sum_between
from rightly.metrics.states import Values as Values
from rightly.resampling import AT_ONCE, LEVEL, Resamples
from rightly.shapes import Confidence

FEW = 200  # resamples of a metric without a definition, which takes a call for each


def replicate_metrics(
    outcomes: Outcomes, metrics: Sequence[str], resamples: Resamples, few: int = FEW
) -> dict[str, Values]:
    """The chosen metrics of every resample; those without a definition of the first few."""
    chosen = [METRICS.find(name) for name in metrics]
    values: dict[str, list[Values]] = {metric.name: [] for metric in chosen}
    done = 0
    for counts in resamples:
        ranks = Ranks(outcomes, counts)
        for metric in chosen:
            if metric.definition is not None:
                values[metric.name].append(metric.definition(ranks))
            elif done < few:
                values[metric.name].append(_measure_each(metric, outcomes, counts[: few - done]))
        done += len(counts)
    return {name: np.concatenate(blocks) for name, blocks in values.items()}


def _measure_each(metric: Metric, outcomes: Outcomes, counts: Counts) -> Values:
    first, second = outcomes.inputs(metric.inputs)
    resampled_rows = (np.repeat(np.arange(len(count)), count) for count in counts)
    values = [metric.measure(first[rows], second[rows]) for rows in resampled_rows]
    return np.array(values, dtype=np.float64)


def paired_p(difference: float, resampled: Values) -> float:
    """Two-sided p value of a difference, from the same difference in every resample.

    The least level at which the difference's own `interval` still holds 0, so that the two never
    contradict each other.
    """
    defined = resampled[~np.isnan(resampled)]
    if np.isnan(difference) or not len(defined):
        return float("nan")
    if abs(difference) < 1e-12:  # methods that are equal up to rounding do not differ
        return 1.0
    towards_zero = (defined - np.median(defined)) * -np.sign(difference)
    beyond = (towards_zero >= abs(difference)).sum()
    return float(min(1.0, 2 * (1 + beyond) / (1 + len(defined))))


def min_resamples(tests: int, level: float) -> int:
    """How many resamples the smallest of that many p values needs to pass Holm's correction."""
    return math.ceil(2 * tests / level)


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """p values corrected for how many there are (Holm, 1979); nan stays nan and counts for none."""
    ascending = sorted((value, name) for name, value in p.items() if not np.isnan(value))
    corrected, largest = dict(p), 0.0
    for rank, (value, name) in enumerate(ascending):
        largest = max(largest, min(1.0, (len(ascending) - rank) * value))
        corrected[name] = largest
    return corrected


class NoiseFloor(NamedTuple):
    """The ECE that confidences would score if they were exactly right."""

    mean: float
    high: float  # 95 % lie below


def noise_floor(confidence: Confidence, draws: int = 1000, seed: int = 0) -> NoiseFloor:
    """ECE with correctness drawn anew from the confidences themselves (25 bins)."""
    rng = np.random.default_rng(seed)
    calibrated = Bins.of_equal_width(Ranks(Outcomes(confidence, np.zeros(len(confidence), bool))))
    c, ends = np.sort(confidence), calibrated.size.cumsum(-1).astype(np.int64)
    blocks, at_once = [], max(1, AT_ONCE // len(c))
    for start in range(0, draws, at_once):
        b = min(at_once, draws - start)
        up_to = (rng.random((b, len(c)), dtype=np.float32) < c).cumsum(-1, dtype=np.int32)
        right = sum_between(up_to, ends)
        blocks.append(mean_gap(calibrated._replace(excess=calibrated.excess - right)))
    ece = np.concatenate(blocks)
    return NoiseFloor(float(ece.mean()), float(np.quantile(ece, LEVEL)))
