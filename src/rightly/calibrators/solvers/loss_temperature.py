"""The inverse temperature b = 1 / T that minimises any loss, over all samples."""

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from scipy.optimize import brentq, minimize_scalar

from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.calibrators.solvers.temperature import (
    ROUGH_MOVE,
    SUBSAMPLE,
    nll_inverse_temperature,
    take_subsample,
)
from rightly.losses import Loss, cross_entropy
from rightly.tensor_shapes import Labels, Logits

OCTAVES = 6  # a loss other than cross-entropy is searched this far around cross-entropy's b
WIDER = 6  # times that the surroundings of a first guess are widened


def fit_inverse_temperature(logits: Logits, labels: Labels, loss: Loss) -> float:
    """The inverse temperature that minimises a loss: approximated on a subsample, then on all."""
    if loss.name == cross_entropy.name:
        return nll_inverse_temperature(logits, labels)
    near = approximate_inverse_temperature(logits, labels, loss)
    reach = 0.01 if len(logits) < 2 * SUBSAMPLE else 0.04
    return _refine(CalibrationData.exact(logits, labels), loss, near, reach)


def approximate_inverse_temperature(
    logits: Logits, labels: Labels, loss: Loss = cross_entropy
) -> float:
    """The inverse temperature that is best for a few thousand of the samples."""
    logits, labels = take_subsample(logits, labels)
    start = nll_inverse_temperature(logits, labels, ROUGH_MOVE)
    if loss.name == cross_entropy.name:
        return start
    low, high = start / 2**OCTAVES, start * 2**OCTAVES
    return _search(CalibrationData.of(logits, labels, low, high), loss, low, high)


def _refine(data: CalibrationData, loss: Loss, near: float, reach: float) -> float:
    """The minimum of a loss near an inverse temperature: the root of its slope in log b."""

    @lru_cache
    def slope_at(log_inverse: float) -> float:
        x = torch.tensor(log_inverse, dtype=torch.float64, device=data.below_top.device)
        with torch.enable_grad():
            value = loss.of(data.scores(x.requires_grad_().expand(len(data.below_top))))
        return float(torch.autograd.grad(value, x)[0])

    found = interpolate_root(slope_at, math.log(near), reach)
    if found is not None:
        return math.exp(found)
    low, high = math.log(near) - reach, math.log(near) + reach
    for _ in range(WIDER):
        if slope_at(low) <= 0 <= slope_at(high):
            return math.exp(brentq(slope_at, low, high, xtol=1e-7))
        low, high = (low - reach, low) if slope_at(low) > 0 else (high, high + reach)
        reach *= 2
    return near


def interpolate_root(slope_at: Callable[[float], float], x: float, reach: float) -> float | None:
    """The root of an increasing slope near x, from three looks at it; None where they differ.

    A step downhill, the root of the line through both, then that of the parabola through all
    three (x as a function of the slope), whose error is about the product of theirs.
    """
    first = slope_at(x)
    after = x - math.copysign(reach / 4, first)
    second = slope_at(after)
    if not (second - first) * (after - x) > 0:
        return None
    line = x - first * (after - x) / (second - first)
    third = slope_at(line) if abs(line - x) <= reach else first
    if len({first, second, third}) < 3:
        return None
    found = (
        x * second * third / ((first - second) * (first - third))
        + after * first * third / ((second - first) * (second - third))
        + line * first * second / ((third - first) * (third - second))
    )
    return found if abs(found - line) <= 0.1 * reach else None


def _search(data: CalibrationData, loss: Loss, low: float, high: float) -> float:
    """The minimum of a loss between two inverse temperatures: a grid, then Brent's method."""

    def loss_at(log_inverse: float) -> float:
        return float(loss.of(data.scores(torch.full_like(data.below_top, log_inverse))))

    grid = torch.linspace(math.log(low), math.log(high), 4 * OCTAVES + 1).tolist()
    best = min(range(len(grid)), key=lambda i: loss_at(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return math.exp(result.x)
