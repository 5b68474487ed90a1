"""The numbers behind every figure: pure functions of (confidence, correct), in NumPy."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rightly.metrics import binning
from rightly.metrics import kernel_smoothing as smoothing
from rightly.metrics.bootstrap import LEVEL, draw
from rightly.metrics.resampled import Outcomes, Replicates, between
from rightly.metrics.validation import check_confidence
from rightly.shapes import AnyArray

Curve = Float[np.ndarray, " points"]
PerBin = Float[np.ndarray, " bins"]
WIDTHS = (0.02, 0.05)
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


def reliability(confidence: AnyArray, correct: AnyArray, bins: int = 15) -> Reliability:
    """What a reliability diagram shows, in bins of equal width."""
    c, a = check_confidence(confidence, correct)
    held = binning.summarise(c, a, binning.equal_width(c, bins), bins)
    low, high = wilson(held.accuracy, np.where(held.count > 0, held.count, np.nan))
    edges = binning.equal_width_edges(bins)
    return Reliability(edges, held.count, held.confidence, held.accuracy, low, high)


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
    scored = Outcomes(c, a)
    ends = np.searchsorted(smoothing.cell_of(scored.levels), np.arange(smoothing.CELLS + 1))
    ones = Replicates(scored, np.ones((1, len(c)), dtype=np.uint8))
    excess = between(ones.excess, ends) / ones.units[:, None]
    width = np.clip(smoothing.fixed_point_bandwidth(excess), *WIDTHS)

    def smoothed(w: Replicates) -> tuple[np.ndarray, np.ndarray]:
        wide = np.repeat(width, len(w.counts))
        every, right = (smoothing.smooth(1.0 * between(x, ends), wide) for x in (w.weight, w.right))
        return every, np.clip(right / np.maximum(every, 1e-12), 0, 1)

    every, accuracy = smoothed(ones)
    many = np.concatenate(
        [smoothed(Replicates(scored, k))[1] for k in draw(len(c), resamples, seed)]
    )
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(many, [tail, 1 - tail], axis=0)
    at = (np.arange(smoothing.CELLS) + 0.5) / smoothing.CELLS
    kept = every[0] * smoothing.CELLS * width[0] >= len(c) / 1000
    kept &= (at >= c.min()) & (at <= c.max())
    return SmoothReliability(
        at[kept],
        accuracy[0][kept],
        low[kept],
        high[kept],
        every[0][kept] * smoothing.CELLS / len(c),
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
    right, wrong = (np.append(0.0, _accepted(c, 1.0 * side)) for side in (a, ~a))
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
    count, wrong = _accepted(c, np.ones(len(c))), _accepted(c, 1.0 * ~a)
    return RiskCoverage(np.unique(c)[::-1], count / len(c), wrong / count)


def _accepted(confidence: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Curve:
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
    index = binning.equal_width(c, bins)
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

    def summed(values: Float[np.ndarray, " n"]) -> Curve:
        return np.append(0.0, np.bincount(level, weights=values).cumsum() / len(c))

    share, sure, right = summed(np.ones(len(c))), summed(c), summed(1.0 * a)
    widest = int(abs(sure - right).argmax())
    return KsCurve(share, sure, right, float(abs(sure - right)[widest]), float(share[widest]))


@dataclass(frozen=True, eq=False)
class TemperatureBand:
    """Temperature in bins of raw confidence that hold enough samples."""

    confidence: PerBin
    median: PerBin
    low: PerBin  # a tenth lies below
    high: PerBin  # a tenth lies above


def temperature_band(
    raw_confidence: Float[np.ndarray, " n"],
    temperature: Float[np.ndarray, " n"],
    bins: int = 20,
    at_least: int = 5,
) -> TemperatureBand:
    """How the temperature goes with the classifier's own confidence."""
    index = binning.equal_width(raw_confidence, bins)
    parts = [index == k for k in range(bins) if (index == k).sum() >= at_least]
    spread = np.array([np.quantile(temperature[part], [0.5, 0.1, 0.9]) for part in parts])
    middle = np.array([raw_confidence[part].mean() for part in parts])
    return TemperatureBand(middle, *spread.reshape(-1, 3).T)


def accepted_at(
    confidence: Float[np.ndarray, " n"], correct: Bool[np.ndarray, " n"], threshold: float
) -> tuple[float, float]:
    """Coverage, and accuracy of what is accepted, where confidence reaches a threshold."""
    kept = confidence >= threshold
    return float(kept.mean()), float(correct[kept].mean()) if kept.any() else float("nan")
