"""Isotonic regression of the true class on the score (Zadrozny & Elkan, 2002)."""

from typing import final

import torch

from rightly.calibrators.binary.binary_calibrator import BinaryCalibrator
from rightly.calibrators.binning.isotonic_one_vs_rest import find_corners
from rightly.calibrators.solvers.piecewise import interpolate
from rightly.calibrators.stored_tensors import Stored
from rightly.tensor_shapes import PerSample, PerSampleBool


@final
class Isotonic(BinaryCalibrator):
    """P(y = 1) as the rising curve of least squared error, straight between its flat pieces."""

    stores = {"xs": Stored("k", is_ascending=True), "ys": Stored("k", 0, 1)}

    xs: torch.Tensor
    ys: torch.Tensor

    def learn_curve(self, log_odds: PerSample, is_one: PerSampleBool) -> None:
        order = log_odds.argsort(stable=True)
        pairs = (log_odds[order].cpu().numpy(), is_one[order].double().cpu().numpy())
        xs, ys = (torch.from_numpy(one).to(log_odds.device) for one in find_corners(*pairs))
        self.store(xs=xs, ys=ys)

    def compute_curve(self, log_odds: PerSample) -> PerSample:
        return interpolate(log_odds, self.xs, self.ys)
