"""The numbers behind every figure: pure functions of (confidence, correct), in NumPy."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rightly.checks import check_confidence
from rightly.metrics import binning
from rightly.metrics.replicates import Outcomes, Replicates, sum_by_bin
from rightly.resampling import LEVEL, draw_resamples
from rightly.shapes import AnyArray

Values = Float[np.ndarray, " n"]
Curve = Float[np.ndarray, " points"]
PerBin = Float[np.ndarray, " bins"]
WIDTHS = (0.02, 0.05)  # the least and the largest of a smooth curve
Z = 1.959964  # the normal quantile of a 95 % interval


@dataclass(frozen=True, eq=False)
class Reliability:
    """Accuracy in bins of confidence, with Wilson's interval; an empty bin is nan."""

    edges: Float[np.ndarray, " edges"]
    count: Int[np.ndarray, " bins"]
    confidence: PerBin
    accuracy: PerBin
    low: PerBin
    high: PerBin

    @property
    def ece(self) -> float:
        """The mean gap over these bins, which are those that are drawn."""
        held = self.count > 0
        gaps = np.abs(self.accuracy[held] - self.confidence[held])
        return float(np.average(gaps, weights=self.count[held]))


def reliability(confidence: AnyArray, correct: AnyArray, bins: int = 15) -> Reliability:
    """What a reliability diagram shows, in bins of equal width."""
    c, a = check_confidence(confidence, correct)
    summary = binning.summarise(c, a, binning.assign_equal_width(c, bins), bins)
    low, high = wilson(summary.accuracy, np.where(summary.count > 0, summary.count, np.nan))
    edges = binning.equal_width_edges(bins)
    return Reliability(edges, summary.count, summary.confidence, summary.accuracy, low, high)


def wilson(share: PerBin, n: PerBin) -> tuple[PerBin, PerBin]:
    """95 % interval of a share of n (Wilson, 1927)."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


@dataclass(frozen=True, eq=False)
class SmoothReliability:
    """Accuracy as a smooth function of confidence, where there are samples."""

    confidence: Curve
    accuracy: Curve
    low: Curve
    high: Curve
    density: Curve
    width: float


def smooth_reliability(
    confidence: AnyArray, correct: AnyArray, resamples: int = 200, seed: int = 0
) -> SmoothReliability:
    """Accuracy smoothed at the width that smooth_ece finds, with a bootstrap band.

    After Blasiok & Nakkiran (2023), but the width stays within WIDTHS: on well calibrated samples
    theirs is so narrow that the curve shows noise, on badly calibrated ones so wide that it hides
    where they go wrong. Left out is where fewer than one sample in a thousand lies within a width.
    """
    c, a = check_confidence(confidence, correct)
    outcomes = Outcomes(c, a)
    cells = binning.CELLS
    ends = binning.cell_ends(outcomes.levels)
    once = Replicates(outcomes, np.ones((1, len(c)), dtype=np.uint8))
    excess = sum_by_bin(once.excess, ends) / once.units[:, None]
    width = np.clip(binning.fixed_point_bandwidth(excess), *WIDTHS)

    def smooth(w: Replicates) -> tuple[np.ndarray, np.ndarray]:
        """Samples in each cell, and their accuracy."""
        widths = np.repeat(width, len(w.counts))
        weight, right = (
            binning.smooth(1.0 * sum_by_bin(sums, ends), widths) for sums in (w.weight, w.right)
        )
        return weight, np.clip(right / np.maximum(weight, 1e-12), 0, 1)

    weight, accuracy = (rows[0] for rows in smooth(once))
    resampled = np.concatenate(
        [
            smooth(Replicates(outcomes, counts))[1]
            for counts in draw_resamples(len(c), resamples, seed)
        ]
    )
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    centre = (np.arange(cells) + 0.5) / cells
    shown = weight * cells * width[0] >= len(c) / 1000
    shown &= (centre >= c.min()) & (centre <= c.max())
    return SmoothReliability(
        centre[shown],
        accuracy[shown],
        low[shown],
        high[shown],
        weight[shown] * cells / len(c),
        float(width[0]),
    )


@dataclass(frozen=True, eq=False)
class Roc:
    """Shares of right and of wrong samples at least as confident as each threshold."""

    wrong: Curve
    right: Curve
    auroc: float


def roc(confidence: AnyArray, correct: AnyArray) -> Roc:
    """How well confidence tells right from wrong; nan where all are right or all wrong."""
    c, a = check_confidence(confidence, correct)
    right, wrong = (np.append(0.0, _cumulate_from_top(c, 1.0 * side)) for side in (a, ~a))
    if not (right[-1] and wrong[-1]):
        return Roc(wrong * np.nan, right * np.nan, float("nan"))
    x, y = wrong / wrong[-1], right / right[-1]
    return Roc(x, y, float((np.diff(x) * (y[1:] + y[:-1])).sum() / 2))


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Error rate among the samples at least as confident as each threshold."""

    threshold: Curve
    coverage: Curve
    risk: Curve


def risk_coverage(confidence: AnyArray, correct: AnyArray) -> RiskCoverage:
    """What is gained by abstaining, from the most confident sample to all."""
    c, a = check_confidence(confidence, correct)
    count, wrong = _cumulate_from_top(c, np.ones(len(c))), _cumulate_from_top(c, 1.0 * ~a)
    return RiskCoverage(np.unique(c)[::-1], count / len(c), wrong / count)


def _cumulate_from_top(confidence: Values, weights: Values) -> Curve:
    """The weight of all samples at or above each distinct confidence, from the highest down."""
    _, level = np.unique(confidence, return_inverse=True)
    return np.bincount(level, weights=weights)[::-1].cumsum()


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many right and how many wrong samples lie in each bin of confidence."""

    edges: Float[np.ndarray, " edges"]
    right: Int[np.ndarray, " bins"]
    wrong: Int[np.ndarray, " bins"]


def histogram(confidence: AnyArray, correct: AnyArray, bins: int = 20) -> Histogram:
    """Confidence of right and of wrong samples."""
    c, a = check_confidence(confidence, correct)
    index = binning.assign_equal_width(c, bins)
    right, wrong = (np.bincount(index[side], minlength=bins) for side in (a, ~a))
    return Histogram(binning.equal_width_edges(bins), right, wrong)


@dataclass(frozen=True, eq=False)
class KsCurve:
    """Confidence and accuracy summed from the least confident sample up, as shares of all."""

    share: Curve
    confidence: Curve
    accuracy: Curve
    ks: float
    at: float  # the share at which the two are farthest apart


def ks_curve(confidence: AnyArray, correct: AnyArray) -> KsCurve:
    """The curves whose largest distance is the KS error."""
    c, a = check_confidence(confidence, correct)
    _, level = np.unique(c, return_inverse=True)

    def cumulate(values: Values) -> Curve:
        return np.append(0.0, np.bincount(level, weights=values).cumsum() / len(c))

    share, expected, right = cumulate(np.ones(len(c))), cumulate(c), cumulate(1.0 * a)
    gap = abs(expected - right)
    widest = int(gap.argmax())
    return KsCurve(share, expected, right, float(gap[widest]), float(share[widest]))


@dataclass(frozen=True, eq=False)
class TemperatureBand:
    """Temperature in bins of raw confidence that hold enough samples."""

    confidence: PerBin
    median: PerBin
    low: PerBin  # a tenth lies below
    high: PerBin  # a tenth lies above


def temperature_band(
    raw_confidence: Values, temperature: Values, bins: int = 20, min_samples: int = 5
) -> TemperatureBand:
    """Median and 80 % range of the temperature by the classifier's own confidence."""
    index = binning.assign_equal_width(raw_confidence, bins)
    parts = [index == k for k in range(bins) if (index == k).sum() >= min_samples]
    spread = np.array([np.quantile(temperature[part], [0.5, 0.1, 0.9]) for part in parts])
    middle = np.array([raw_confidence[part].mean() for part in parts])
    return TemperatureBand(middle, *spread.reshape(-1, 3).T)
