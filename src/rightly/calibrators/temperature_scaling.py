"""One temperature for all samples (Guo et al., 2017).

With cross-entropy this is temperature scaling. With the released code's class-balanced
correctness-aware loss it is a control: what lowering every confidence alone achieves.
"""

import math
from typing import final

import torch
from scipy.optimize import minimize_scalar

from rightly.calibrators.families import TemperatureCalibrator
from rightly.calibrators.solvers.margin_table import moments, typical_spread
from rightly.calibrators.solvers.scaled_scores import Calibrating
from rightly.losses import Loss, cross_entropy, loss
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample

MAX_SCALE_RATIO = 1e3  # b times the typical spread of logits stays within 1/MAX_SCALE_RATIO..MAX_SCALE_RATIO: flat .. one-hot
OCTAVES = 6  # a loss other than cross-entropy is searched this far around the likeliest b
SUBSAMPLE = 4096  # samples that place the first guess within a percent or two


@final
class TemperatureScaling(TemperatureCalibrator):
    """The temperature that minimises a loss over the calibration data."""

    inverse: torch.Tensor

    def __init__(self, loss: str = "cross_entropy") -> None:
        super().__init__()
        self.loss = loss

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        inverse = best_inverse_temperature(predictions.logits, labels, loss(self.loss))
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64))

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return self.inverse.reciprocal().expand(predictions.logits.shape[0])


def best_inverse_temperature(logits: Logits, labels: Labels, chosen: Loss) -> float:
    """The inverse temperature that minimises a loss: found on some samples, finished on all."""
    if chosen.name == cross_entropy.name:
        return nll_inverse_temperature(logits, labels)
    near = rough_inverse_temperature(logits, labels, chosen)
    low, high = near * 0.8, near * 1.25
    if len(logits) < 2 * SUBSAMPLE:
        low, high = near * 0.99, near * 1.01
    exact = Calibrating.of(logits, labels, low, high).exactly()
    return search(exact, chosen, low, high, steps=2, tolerance=1e-8)


def search(
    data: Calibrating,
    chosen: Loss,
    low: float,
    high: float,
    steps: int = 4 * OCTAVES,
    tolerance: float = 1e-4,
) -> float:
    """The inverse temperature between low and high that minimises a loss."""

    def loss_at(log_inverse: float) -> float:
        return float(chosen.of(data.scores(torch.full_like(data.below_top, log_inverse))))

    grid = torch.linspace(math.log(low), math.log(high), steps + 1).tolist()
    best = min(range(len(grid)), key=lambda i: loss_at(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": tolerance})
    return math.exp(found.x)


def rough_inverse_temperature(
    logits: Logits, labels: Labels, chosen: Loss = cross_entropy
) -> float:
    """The inverse temperature that is best for a few thousand of the samples."""
    step = max(1, len(logits) // SUBSAMPLE)
    some, truth = logits[::step], labels[::step]
    likeliest = nll_inverse_temperature(some, truth)
    if chosen.name == cross_entropy.name:
        return likeliest
    low, high = likeliest / 2**OCTAVES, likeliest * 2**OCTAVES
    return search(Calibrating.of(some, truth, low, high), chosen, low, high)


def nll_inverse_temperature(logits: Logits, labels: Labels) -> float:
    """The inverse temperature that minimises cross-entropy, which is convex in it.

    Newton's method inside a bracket, first on a few thousand samples, so that two or three passes
    over all of them suffice.
    """
    spread = typical_spread(logits)
    if spread == 0:
        return 1.0  # every row is constant: no temperature changes anything
    lowest, highest = 1 / (MAX_SCALE_RATIO * spread), MAX_SCALE_RATIO / spread
    start = 1.0 / spread
    if len(logits) >= 2 * SUBSAMPLE:
        start = rough_inverse_temperature(logits, labels)
    return _newton(logits, labels, start, lowest, highest)


def _newton(logits: Logits, labels: Labels, start: float, lowest: float, highest: float) -> float:
    """Root of the slope of cross-entropy in b, kept inside a shrinking bracket."""
    true_gap = float(
        (logits.gather(-1, labels[:, None]).squeeze(-1) - logits.amax(-1))
        .double()
        .cpu()
        .numpy()
        .mean()
    )
    b, low, high = min(max(start, lowest), highest), lowest, highest
    for _ in range(200):
        at_b = moments(logits, b)
        slope = float(at_b.mean.cpu().numpy().mean()) - true_gap
        curvature = float(at_b.variance.cpu().numpy().mean())
        low, high = (b, high) if slope < 0 else (low, b)
        newton = b - slope / curvature if curvature > 0 else low
        inside = low < newton < high
        following = newton if inside else math.sqrt(low * high)
        move = abs(following - b) / b
        b = following
        # Newton's error after a step is about the square of the step.
        if inside and move < 1e-6 or high / low < 1 + 1e-12:
            break
    return b
