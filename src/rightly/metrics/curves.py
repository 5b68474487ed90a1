"""The numbers behind every figure: pure functions of (confidence, correct), in NumPy."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rightly.checks import check_confidence, check_count, check_probabilities
from rightly.metrics import smoothing, states
from rightly.metrics.definitions import auroc, ks, mean_gap
from rightly.metrics.states import CELLS, Bins, Outcomes, Ranks, UpToLevels, step
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
    ece: float  # over these bins, which are those that are drawn


def reliability(confidence: AnyArray, correct: AnyArray, bins: int = 15) -> Reliability:
    """What a reliability diagram shows, in bins of equal width."""
    held = Bins.of_equal_width(_rank(confidence, correct), bins)
    filled = np.where(held.size[0] > 0, held.size[0], np.nan)  # 0 / nan is nan, without a warning
    accuracy, excess = held.right[0] / filled, held.excess[0] / filled
    return Reliability(
        states.equal_width_edges(bins),
        held.size[0].astype(np.int64),
        accuracy + excess,
        accuracy,
        *wilson(accuracy, filled),
        float(mean_gap(held)[0]),
    )


def _rank(confidence: AnyArray, correct: AnyArray) -> Ranks:
    return Ranks(Outcomes(*check_confidence(confidence, correct)))


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
    once = _rank(confidence, correct)
    c = once.outcomes.confidence
    excess = Bins.of_cells(once).excess / len(c)
    width = np.clip(smoothing.fixed_point_bandwidth(excess), *WIDTHS)

    def smooth(ranks: Ranks) -> tuple[np.ndarray, np.ndarray]:
        """Samples in each cell, and their accuracy."""
        cells = Bins.of_cells(ranks)
        widths = np.repeat(width, len(cells.size))
        weight, right = (smoothing.smooth(mass, widths) for mass in (cells.size, cells.right))
        return weight, np.clip(right / np.maximum(weight, 1e-12), 0, 1)

    weight, accuracy = (rows[0] for rows in smooth(once))
    blocks = draw_resamples(len(c), resamples, seed)
    resampled = np.concatenate([smooth(Ranks(once.outcomes, counts))[1] for counts in blocks])
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    centre = (np.arange(CELLS) + 0.5) / CELLS
    shown = weight * CELLS * width[0] >= len(c) / 1000
    shown &= (centre >= c.min()) & (centre <= c.max())
    return SmoothReliability(
        centre[shown],
        accuracy[shown],
        low[shown],
        high[shown],
        weight[shown] * CELLS / len(c),
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
    ranks = _rank(confidence, correct)
    wrong, right = (np.append(0.0, _sum_from_top(side)) for side in (ranks.wrong, ranks.right))
    pairs = wrong[-1] * right[-1]
    x, y = (side / side[-1] if pairs else side * np.nan for side in (wrong, right))
    return Roc(x, y, float(auroc.definition(ranks)[0]))


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Error rate among the samples at least as confident as each threshold."""

    threshold: Curve
    coverage: Curve
    risk: Curve


def risk_coverage(confidence: AnyArray, correct: AnyArray) -> RiskCoverage:
    """What is gained by abstaining, from the most confident sample to all."""
    ranks = _rank(confidence, correct)
    count = _sum_from_top(ranks.weight)
    risk = _sum_from_top(ranks.wrong) / count
    return RiskCoverage(ranks.outcomes.levels[::-1], count / count[-1], risk)


def _sum_from_top(up_to: UpToLevels) -> Curve:
    """How many samples have at least the confidence of each level, from the highest down."""
    return step(up_to)[0, ::-1].cumsum().astype(np.float64)


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many right and how many wrong samples lie in each bin of confidence."""

    edges: Float[np.ndarray, " edges"]
    right: Int[np.ndarray, " bins"]
    wrong: Int[np.ndarray, " bins"]


def histogram(confidence: AnyArray, correct: AnyArray, bins: int = 20) -> Histogram:
    """Confidence of right and of wrong samples."""
    c, a = check_confidence(confidence, correct)
    index = states.assign_equal_width(c, bins)
    right, wrong = (np.bincount(index[side], minlength=bins) for side in (a, ~a))
    return Histogram(states.equal_width_edges(bins), right, wrong)


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
    ranks = _rank(confidence, correct)
    n, unit = ranks.n[0], ranks.outcomes.unit
    sums = ranks.weight, ranks.excess / unit + ranks.right, ranks.right
    share, expected, right = (np.append(0.0, cumulated[0] / n) for cumulated in sums)
    widest = int(abs(expected - right).argmax())
    return KsCurve(share, expected, right, float(ks.definition(ranks)[0]), float(share[widest]))


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
    index = states.assign_equal_width(raw_confidence, bins)
    parts = [index == k for k in range(bins) if (index == k).sum() >= min_samples]
    spread = np.array([np.quantile(temperature[part], [0.5, 0.1, 0.9]) for part in parts])
    middle = np.array([raw_confidence[part].mean() for part in parts])
    return TemperatureBand(middle, *spread.reshape(-1, 3).T)


@dataclass(frozen=True)
class BrierDecomposition:
    """`brier` = `reliability` - `resolution` + `uncertainty` + `within_bins`, to rounding.

    `within_bins` is what binning hides: 0 where all probabilities of a bin are equal.
    """

    brier: float
    reliability: float  # the calibration error: 0 is best
    resolution: float  # how far the bins' frequencies lie from the overall ones: large is best
    uncertainty: float  # of the labels alone: the score of always giving their frequencies
    within_bins: float

    @property
    def refinement(self) -> float:
        """What is left of the score where calibration is perfect: uncertainty - resolution."""
        return self.uncertainty - self.resolution + self.within_bins


def brier_decomposition(
    probabilities: AnyArray, labels: AnyArray, bins: int = states.BINS
) -> BrierDecomposition:
    """The multiclass Brier score in Murphy's (1973) terms, each class in equal-width bins.

    All terms are sums over classes. Within bins probability and truth vary by themselves and
    together (Stephenson et al., 2008): their variance less twice their covariance.
    """
    p, y = check_probabilities(probabilities, labels)
    bins = check_count("bins", bins)
    terms = np.zeros(4)
    for k in range(p.shape[1]):  # one class at a time, as in classwise_ece
        own, truth = np.ascontiguousarray(p[:, k]), y == k
        held = Bins.of_equal_width(Ranks(Outcomes(own, truth)), bins)
        share, filled = held.size[0] / len(own), np.maximum(held.size[0], 1)
        frequency, base = held.right[0] / filled, truth.mean()
        mean = frequency + held.excess[0] / filled
        terms += (
            share @ (mean - frequency) ** 2,
            share @ (frequency - base) ** 2,
            base * (1 - base),
            (own * (own - 2 * truth)).mean() - share @ (mean * (mean - 2 * frequency)),
        )
    reliability, resolution, uncertainty, within = terms.tolist()
    brier = reliability - resolution + uncertainty + within
    return BrierDecomposition(brier, reliability, resolution, uncertainty, within)
