"""Smoothing by a Gaussian kernel on a fine grid over [0, 1].

The grid is mirrored at both ends so that no mass is lost.
"""

import numpy as np
from jaxtyping import Float

TOLERANCE = 1e-9
MAX_STEPS = 120  # of which 40 halve: 5 the logarithm, 30 a range of 1 down to TOLERANCE

OnGrid = Float[np.ndarray, "b cells"]
Widths = Float[np.ndarray, " b"]


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
