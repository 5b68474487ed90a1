"""Spline recalibration of the confidence (Gupta et al., ICLR 2021)."""

from typing import final

import numpy as np
import torch
from scipy.interpolate import CubicSpline

from rightly.calibrators.base import Calibrator
from rightly.calibrators.confidence_pairs import own_confidence
from rightly.calibrators.solvers.piecewise import interpolate
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample


@final
class Spline(Calibrator):
    """Adds to each confidence the slope of the cumulative gap between correctness and confidence.

    The cumulative gap over samples sorted by confidence is smoothed by a natural cubic spline
    with equally spaced knots in the sample's rank.
    """

    stores = {"xs": Stored("k", 0, 1 + 1e-6, is_ascending=True), "ys": Stored("k", 0, 1)}

    xs: torch.Tensor
    ys: torch.Tensor

    def __init__(self, knots: int = 6) -> None:
        super().__init__()
        if knots < 2:
            raise ValueError(f"knots must be at least 2, got {knots}")
        self.knots = knots

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        scores = own_confidence(predictions).cpu().numpy()
        correct = (predictions.classes == labels).cpu().numpy()
        order = np.argsort(scores, kind="stable")
        scores, correct = scores[order], correct[order]
        n = len(scores)
        rank = np.arange(n + 1) / n
        gap = np.append(0.0, np.cumsum(correct - scores)) / n
        # A tie group shares one confidence, so only the gap at its end is meaningful.
        ends = np.append(0, np.flatnonzero(np.append(np.diff(scores) > 0, True)) + 1)
        spline = natural_spline(rank[ends], gap[ends], self.knots)
        confidence = scores + spline.derivative()(np.arange(1, n + 1) / n)
        unique, group = np.unique(scores, return_inverse=True)
        mean = np.bincount(group, confidence.clip(0, 1)) / np.bincount(group)
        device = predictions.logits.device
        self.store(xs=torch.from_numpy(unique).to(device), ys=torch.from_numpy(mean).to(device))

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        return interpolate(own_confidence(predictions), self.xs, self.ys)


def natural_spline(t: np.ndarray, values: np.ndarray, knots: int) -> CubicSpline:
    """Least-squares natural cubic spline on [0, 1] with equally spaced knots."""
    places = np.linspace(0, 1, knots)
    # The splines through unit vectors at the knots are a basis of all of them.
    basis = CubicSpline(places, np.eye(knots), bc_type="natural")
    heights = np.linalg.lstsq(basis(t), values, rcond=None)[0]
    return CubicSpline(places, heights, bc_type="natural")
