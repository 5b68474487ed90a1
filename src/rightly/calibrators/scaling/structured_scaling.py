"""Structured vector and matrix scaling (Berta et al., 2025): how far to go depends on n and c.

Each group of parameters is drawn to temperature scaling with a strength of its own size over the
number of samples: c / n for biases and for the diagonal, c (c - 1) / n off it.
"""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.scaling.affine import MATRIX, VECTOR, AffineCalibrator
from rightly.calibrators.solvers.softmax_regression import (
    Affine,
    Penalty,
    Rows,
    fit_softmax_regression,
)
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions.masking import MASKED, count_possible, fill_masked
from rightly.tensor_shapes import Logits

UNIFORM = {"uniform": Stored(low=0, high=1)}


class StructuredCalibrator(AffineCalibrator):
    """Inputs are logs of tempered probabilities, of which 1 / (n + 1) is uniform.

    That share bounds them from below, by what n samples can tell.
    """

    uniform: Tensor

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__()
        if not 0 <= strength < float("inf"):
            raise ValueError(f"strength must be a number of at least 0, got {strength}")
        self.strength = strength

    @final
    def prepare(self, sample_count: int) -> None:
        share = torch.tensor(1 / (sample_count + 1), dtype=torch.float64)
        self.store(uniform=share.to(self.inverse.device))

    @final
    def compute_inputs(self, logits: Logits) -> Logits:
        p = (logits.double() * self.inverse).softmax(-1)
        mixed = (1 - self.uniform) * p + self.uniform / count_possible(logits)[:, None]
        log_p = torch.where(logits <= MASKED, torch.full_like(mixed, MASKED), mixed.log())
        return fill_masked(log_p)

    @final
    def solve(self, rows: Rows, start: Affine) -> Affine:
        n, c = rows.x.shape
        each, pairs = self.strength * c / n, self.strength * c * (c - 1) / n
        return fit_softmax_regression(rows, Penalty(each, pairs, each), start)


@final
class StructuredVectorScaling(StructuredCalibrator):
    """softmax(w ∘ x + b), w near 1 and b near 0 (SVS)."""

    stores = VECTOR | UNIFORM


@final
class StructuredMatrixScaling(StructuredCalibrator):
    """softmax(W x + b), W near the identity and b near 0 (SMS)."""

    is_diagonal = False
    stores = MATRIX | UNIFORM
