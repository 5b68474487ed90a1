"""The inverse temperature b = 1 / T that minimises any loss, over all samples."""

import math

import torch
from scipy.optimize import minimize_scalar

from rightly.calibrators.solvers.newton import find_root
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
WIDEST = 32  # how far from a first guess a minimum is searched, over how far off it should be


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
    """The minimum of a loss near an inverse temperature b: the root of its slope in log b."""

    def slope_at(b: float) -> tuple[float, None]:
        x = torch.tensor(math.log(b), dtype=torch.float64, device=data.below_top.device)
        with torch.enable_grad():
            value = loss.of(data.scores(x.requires_grad_().expand(len(data.below_top))))
        return float(torch.autograd.grad(value, x)[0]), None

    bracket = near / math.exp(WIDEST * reach), near * math.exp(WIDEST * reach)
    return find_root(slope_at, near, bracket, 0.1 * reach, reach / 4)


def _search(data: CalibrationData, loss: Loss, low: float, high: float) -> float:
    """The minimum of a loss between two inverse temperatures: a grid, then Brent's method."""

    def loss_at(log_inverse: float) -> float:
        return float(loss.of(data.scores(torch.full_like(data.below_top, log_inverse))))

    grid = torch.linspace(math.log(low), math.log(high), 4 * OCTAVES + 1).tolist()
    best = min(range(len(grid)), key=lambda i: loss_at(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return math.exp(result.x)
