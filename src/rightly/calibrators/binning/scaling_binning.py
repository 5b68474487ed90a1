"""Scaling-binning (Kumar et al., 2019): a smooth fit, then the means of its values in bins."""

from typing import final

import numpy as np
import torch

from rightly.calibrators.binning.step_confidence import (
    BINS,
    StepConfidence,
    equal_mass_edges,
)
from rightly.calibrators.solvers.ridge_logistic import fit_platt
from rightly.checks import check_count


@final
class ScalingBinning(StepConfidence):
    """Platt scaling of the confidence's log-odds, averaged in bins of equal mass.

    A bin's value is the mean of fitted values, whose variance is less than that of labels; and
    unlike a curve, a finite number of values has a calibration error that can be measured.
    """

    def __init__(self, bins: int = BINS) -> None:
        super().__init__()
        self.bins = check_count("bins", bins, 1, 10**6)

    def find_steps(
        self, confidence: np.ndarray, correct: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        log_odds = torch.logit(torch.from_numpy(confidence), eps=1e-12)
        right = torch.from_numpy(correct) > 0
        fitted = fit_platt(log_odds, right, torch.ones_like(log_odds))
        scaled = fitted(log_odds).sigmoid().numpy()
        edges = equal_mass_edges(confidence, self.bins)
        place = np.searchsorted(edges, confidence)
        return edges, np.bincount(place, scaled) / np.bincount(place)
