"""A weight and a bias a class (Guo et al., 2017)."""

from typing import final

from rightly.calibrators.scaling.affine import AffineCalibrator
from rightly.calibrators.solvers.softmax_regression import (
    Affine,
    Penalty,
    Rows,
    fit_softmax_regression,
)


@final
class VectorScaling(AffineCalibrator):
    """softmax(w ∘ x + b): each class has its own slope and level."""

    def solve(self, rows: Rows, start: Affine) -> Affine:
        return fit_softmax_regression(rows, Penalty(), start)
