"""Samples of similar confidence: in bins, and smoothed by a Gaussian kernel.

The kernel works on a fine grid over [0, 1], mirrored at both ends so that no mass is lost.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rightly.shapes import Confidence, Correct

BINS = 25  # the default of the binned metrics, as in the paper's tables

CELLS = 1000  # finer than the width found on 1e5 calibrated samples, 0.007
TOLERANCE = 1e-9
MAX_STEPS = 120  # of which 40 halve: 5 the logarithm, 30 a range of 1 down to TOLERANCE

Values = Float[np.ndarray, " n"]
Index = Int[np.ndarray, " n"]
Edges = Float[np.ndarray, " edges"]
PerBin = Float[np.ndarray, " bins"]
OnGrid = Float[np.ndarray, "b cells"]
InBins = Float[np.ndarray, "b bins"]
Widths = Float[np.ndarray, " b"]


@dataclass(frozen=True, eq=False)  # arrays have no single truth to compare by
class Summary:
    """What each bin holds; the means of an empty bin are nan."""

    count: Int[np.ndarray, " bins"]
    confidence: PerBin
    accuracy: PerBin

    def gap(self) -> PerBin:
        """Distance between mean confidence and accuracy in each bin."""
        return abs(self.confidence - self.accuracy)


def equal_width_edges(bins: int) -> Edges:
    """The bins + 1 edges m / bins."""
    # A true quotient is rounded once, so that 7 / 25 is the very number a user writes as 0.28;
    # linspace multiplies by a rounded step and can miss it.
    return np.arange(bins + 1) / bins


def quantile_edges(values: Values, bins: int) -> Edges:
    """The bins + 1 edges that split the values into equal counts, interpolated linearly."""
    return np.quantile(values, equal_width_edges(bins))


def interpolate(below: np.ndarray, above: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Between two neighbours of a quantile, rounded as np.quantile does."""
    # An edge that equals a level decides on which side it lies.
    step = above - below
    return np.where(share < 0.5, below + step * share, above - step * (1 - share))


def assign_equal_width(values: Values, bins: int) -> Index:
    """The bin of each value: m where m / bins < value <= (m + 1) / bins, and 0 for value 0."""
    # The outer edges are left out of the search: no value can fall off either end.
    return np.searchsorted(equal_width_edges(bins)[1:-1], values, side="left")


def assign_quantile(values: Values, bins: int) -> Index:
    """The bin of each value when bins hold equal counts; equal values share a bin."""
    # Closed on the left, so that values saturated at 1, however many, have the last bin to
    # themselves; closed on the right, they would be mixed with the values just below.
    return np.searchsorted(quantile_edges(values, bins)[1:-1], values, side="right")


def summarise(confidence: Confidence, correct: Correct, index: Index, bins: int) -> Summary:
    """Count, mean confidence and accuracy of each bin."""
    count = np.bincount(index, minlength=bins)
    divisor = np.where(count > 0, count, np.nan)  # 0 / nan is nan, without a warning
    return Summary(
        count=count,
        confidence=np.bincount(index, weights=confidence, minlength=bins) / divisor,
        accuracy=np.bincount(index, weights=correct, minlength=bins) / divisor,
    )


def expected_excess_by_chance(excess: InBins, variance: InBins, count: InBins) -> Widths:
    """By how much chance alone raises the summed absolute excess of the bins.

    A bin of n samples whose mean gap is t is seen with a normal error of variance v / n^2, v being
    the sum of c (1 - c), and the mean of |t + error| exceeds t by s B(t / s), s = sqrt(v) / n, with
    B(z) = 2 phi(z) - 2 z Phi(-z). For t stands one gap for all bins, the root of the debiased mean
    squared gap (Kumar et al., 2019): a bin's own gap is itself raised by chance, and would undo
    only two fifths of what chance adds to calibrated samples.
    """
    from scipy.special import ndtr

    filled = np.where(count > 0, count, 1)
    squared = ((excess**2 - variance) / filled).sum(-1) / count.sum(-1)
    gap = np.sqrt(np.maximum(squared, 0))[:, None]
    deviation = np.sqrt(variance)
    # Beyond 40 deviations, and where nothing can vary, chance adds nothing.
    z = filled * gap / np.maximum(np.where(deviation > 0, deviation, np.inf), filled * gap / 40)
    raised = 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - 2 * z * ndtr(-z)
    return (deviation * raised).sum(-1)


def assign_cells(values: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The cell of the grid that each value lies in."""
    return np.minimum((values * CELLS).astype(np.int64), CELLS - 1)


def cell_ends(levels: Float[np.ndarray, " levels"]) -> Int[np.ndarray, " edges"]:
    """How many of these ascending values lie below each cell, and in all."""
    return np.searchsorted(assign_cells(levels), np.arange(CELLS + 1))


def smooth(mass: OnGrid, width: Widths) -> OnGrid:
    """Each row smoothed by a Gaussian of its own width."""
    return _smooth_transformed(_transform(mass), width)


def fixed_point_bandwidth(excess: OnGrid) -> Widths:
    """The width at which the smoothed excess sums, in absolute value, to the width itself.

    Smoothing never raises that sum above the unsmoothed one nor lowers it below that of all excess
    at infinite width, so such a width lies between the two.
    """
    transformed = _transform(excess)

    def sum_minus_width(width: Widths) -> Widths:
        return abs(_smooth_transformed(transformed, width)).sum(-1) - width

    low, high = abs(excess.sum(-1)), abs(excess).sum(-1)
    at_low, at_high = sum_minus_width(low), sum_minus_width(high)
    # Where rounding leaves no sign change, or nothing between the ends, an end is the width.
    width = np.where(at_low <= TOLERANCE, low, high)
    searched = (at_low > TOLERANCE) & (at_high < -TOLERANCE)
    # False position, once the ends are close enough for the function to be nearly straight between
    # them; every third step halves, so that 30 such steps find any width to TOLERANCE.
    for step in range(MAX_STEPS):
        if not searched.any():
            break
        straight = low + at_low / np.where(searched, at_low - at_high, 1.0) * (high - low)
        middle = np.where(
            high > 2 * low, np.sqrt(np.maximum(low, TOLERANCE) * high), (low + high) / 2
        )
        falls_straight = (high <= 2 * low) & (step % 3 < 2)
        width = np.where(searched, np.where(falls_straight, straight, middle), width)
        value = sum_minus_width(width)
        beyond = value < 0
        low, high = np.where(beyond, low, width), np.where(beyond, width, high)
        at_low, at_high = np.where(beyond, at_low, value), np.where(beyond, value, at_high)
        searched &= (abs(value) > TOLERANCE) & (high - low > TOLERANCE)
    return width


def _transform(mass: OnGrid) -> OnGrid:
    from scipy.fft import dct

    # The cosine transform of type 2 mirrors at the outer edges of the grid: at 0 and at 1.
    return dct(mass, norm="ortho")


def _smooth_transformed(transformed: OnGrid, width: Widths) -> OnGrid:
    from scipy.fft import idct

    return idct(_damping(transformed.shape[-1], width) * transformed, norm="ortho")


def _damping(cells: int, width: Widths) -> OnGrid:
    """How a Gaussian of each width, sampled at the cells and mirrored, damps each frequency."""
    frequency = np.pi * np.arange(cells)
    damping = np.exp(-((frequency * width[:, None]) ** 2) / 2)
    # From 3 cells up that is the sampled Gaussian to the last digit. A narrower one, cut off at
    # the grid's highest frequency, would ring below 0 and raise the sum of what it smooths.
    narrow = width * cells < 3
    if narrow.any():
        distance = np.arange(1, 28)  # at 9 deviations a Gaussian has vanished
        deviation = np.maximum(width[narrow, None] * cells, 1e-3)
        kernel = np.exp(-((distance / deviation) ** 2) / 2)
        waves = np.cos(distance[:, None] * frequency / cells)
        damping[narrow] = (1 + 2 * kernel @ waves) / (1 + 2 * kernel.sum(-1, keepdims=True))
    return damping
