"""Platt scaling: a logistic curve of the log-odds (Platt, 1999)."""

from typing import final

import torch

from rightly.calibrators.binary.binary_calibrator import BinaryCalibrator
from rightly.calibrators.solvers.ridge_logistic import fit_platt
from rightly.calibrators.stored_tensors import Stored
from rightly.tensor_shapes import PerSample, PerSampleBool


@final
class Platt(BinaryCalibrator):
    """P(y = 1) = sigmoid(slope * log-odds + bias), with slope >= 0 and Platt's targets."""

    stores = {"slope": Stored(low=0), "bias": Stored()}

    slope: torch.Tensor
    bias: torch.Tensor

    def learn_curve(self, log_odds: PerSample, is_one: PerSampleBool) -> None:
        affine = fit_platt(log_odds, is_one, torch.ones_like(log_odds))
        self.store(slope=affine.slope, bias=affine.bias)

    def compute_curve(self, log_odds: PerSample) -> PerSample:
        return (self.slope * log_odds + self.bias).sigmoid()
