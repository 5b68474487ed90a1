"""What vector, matrix, Dirichlet and structured scaling share: softmax(W x + b) of inputs x."""

from abc import abstractmethod
from typing import final

import torch
from torch import Tensor

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers.softmax_regression import (
    FREE,
    ROUGH,
    Affine,
    Penalty,
    Rows,
    compute_cross_entropy,
    fit_softmax_regression,
    identity,
)
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, fill_masked
from rightly.tensor_shapes import Labels, Logits

STRENGTHS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)  # of the penalty, from the strongest on
FOLDS = 3
VECTOR = {"inverse": Stored(low=POSITIVE), "weight": Stored("c"), "bias": Stored("c")}
MATRIX = VECTOR | {"weight": Stored("c c")}


class AffineCalibrator(VectorCalibrator):
    """softmax(W x + b), with x from logits that temperature scaling was applied to first.

    So x has the same unit whatever that of the logits, W starts from the identity, and a penalty
    has the same meaning for every classifier. An offset of a row's logits says nothing.
    """

    keeps_class = False
    sorts_rows = True
    is_diagonal = True
    stores = VECTOR

    inverse: Tensor
    weight: Tensor
    bias: Tensor

    def compute_inputs(self, logits: Logits) -> Logits:
        """x, in float64: the scaled logits less the row's mean; masked ones stand at the mean."""
        filled = fill_masked(logits).double()
        return (filled - filled.mean(-1, keepdim=True)) * self.inverse

    @abstractmethod
    def solve(self, rows: Rows, start: Affine) -> Affine:
        """W and b."""

    @final
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits = predictions.logits
        inverse = nll_inverse_temperature(logits, labels)
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64, device=logits.device))
        self.prepare(len(logits))
        masked = logits <= MASKED if predictions.has_masked else None
        rows = Rows(self.compute_inputs(logits), labels, masked)
        count = predictions.class_count
        start = identity(count, is_diagonal=self.is_diagonal, device=logits.device)
        found = self.solve(rows, start)
        self.store(weight=found.weight, bias=found.bias)

    def prepare(self, sample_count: int) -> None:
        """Stores what inputs depend on beside the temperature."""

    @final
    def compute_vectors(self, logits: Logits) -> Logits:
        affine = Affine(self.weight, self.bias)
        return affine.apply(self.compute_inputs(logits)).softmax(-1)


class OdirCalibrator(AffineCalibrator):
    """A full matrix under off-diagonal and intercept regularisation (ODIR; Kull et al., 2019).

    The penalty is the strength times the mean square of what stands off the diagonal, plus the
    strength times that of the intercepts; the diagonal is free.
    """

    is_diagonal = False
    stores = MATRIX

    def __init__(self, strength: float | None = None) -> None:
        super().__init__()
        if strength is not None and not 0 <= strength < float("inf"):
            raise ValueError(
                f"strength must be a number of at least 0, or None to select it by "
                f"cross-validation, got {strength}"
            )
        self.strength = strength

    @final
    def solve(self, rows: Rows, start: Affine) -> Affine:
        strength = self.strength
        if strength is None:
            strength, start = select_strength(rows, start)
        return fit_softmax_regression(rows, odir(strength, rows.x.shape[1]), start)


def odir(strength: float, class_count: int) -> Penalty:
    pairs = class_count * (class_count - 1)
    return Penalty(FREE, max(strength / pairs, FREE), max(strength / class_count, FREE))


def select_strength(rows: Rows, start: Affine) -> tuple[float, Affine]:
    """The strength with the least held-out cross-entropy, and a start near its solution.

    From the strongest on, each fit starts at the last; the weaker ones, which take longest, are
    left out once the held-out loss rises.
    """
    n, c = rows.x.shape
    if n < FOLDS:
        return STRENGTHS[0], start
    fold = torch.arange(n, device=rows.x.device) % FOLDS
    parts = [(rows.take(fold != k), rows.take(fold == k)) for k in range(FOLDS)]
    solutions, nearest, best, chosen = [start] * FOLDS, start, float("inf"), STRENGTHS[0]
    for strength in STRENGTHS:
        penalty = odir(strength, c)
        solutions = [
            fit_softmax_regression(fitted, penalty, near, ROUGH)
            for (fitted, _), near in zip(parts, solutions, strict=True)
        ]
        held = [
            compute_cross_entropy(out, affine) * len(out.x)
            for (_, out), affine in zip(parts, solutions, strict=True)
        ]
        loss = sum(held) / n
        if loss >= best:
            break
        best, chosen, nearest = loss, strength, solutions[0]
    return chosen, nearest
