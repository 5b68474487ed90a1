"""Beta calibration: a logistic curve of ln p and -ln(1 - p) (Kull et al., AISTATS 2017)."""

from typing import final

import torch
from torch.nn import functional

from rightly.calibrators.binary.binary_calibrator import BinaryCalibrator
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_platt, fit_ridge_logistic
from rightly.calibrators.stored_tensors import Stored
from rightly.tensor_shapes import Features, PerSample, PerSampleBool

RIDGE = 1e-6  # per sample sum: keeps columns that are nearly the same solvable, and nothing else
NO_OFFSET = 1e6  # a penalty on the offset of the one class that the regression has


@final
class Beta(BinaryCalibrator):
    """P(y = 1) = sigmoid(a ln p - b ln(1 - p) + bias), with a, b >= 0.

    With a = b it is Platt scaling; unequal ones bend the two ends differently, and the identity is
    among the curves. Targets are Platt's, so that separable samples have a solution.
    """

    stores = {"weights": Stored("2", low=0), "bias": Stored()}

    weights: torch.Tensor
    bias: torch.Tensor

    def learn_curve(self, log_odds: PerSample, is_one: PerSampleBool) -> None:
        columns, ones = _columns(log_odds), torch.ones_like(log_odds)
        rows = Rows(columns, torch.zeros_like(is_one, dtype=torch.int64), is_one, ones)
        penalty = torch.full_like(columns[0], RIDGE)
        solution = fit_ridge_logistic(rows, penalty, NO_OFFSET, 1)
        weights, bias = solution.weights, solution.bias + solution.offsets[0]
        if not bool((weights >= 0).all()):  # as the paper does: without the column that falls
            kept = int(weights.argmax())
            affine = fit_platt(columns[:, kept], is_one, ones)
            weights = torch.zeros_like(weights)
            weights[kept] = affine.slope
            bias = affine.bias
        self.store(weights=weights, bias=bias)

    def compute_curve(self, log_odds: PerSample) -> PerSample:
        return (_columns(log_odds) @ self.weights + self.bias).sigmoid()


def _columns(log_odds: PerSample) -> Features:
    """ln p and -ln(1 - p), without ever forming p, which saturates."""
    return torch.stack([-functional.softplus(-log_odds), functional.softplus(log_odds)], -1)
