"""What histogram binning and its relatives share: a confidence that is constant within each bin."""

from abc import abstractmethod
from typing import final

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators.base import Calibrator
from rightly.calibrators.confidence_pairs import own_confidence, sorted_pairs
from rightly.calibrators.solvers.piecewise import count_below
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample

BINS = 15


class StepConfidence(Calibrator):
    """A value for each bin of the classifier's confidence; bins are open below, closed above."""

    stores = {"ends": Stored("b", 0, 1 + 1e-6, is_ascending=True), "values": Stored("b", 0, 1)}

    ends: Tensor  # the upper end of each bin; what lies above the last is in it too
    values: Tensor

    @abstractmethod
    def find_steps(
        self, confidence: np.ndarray, correct: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Edges between bins, and one value more, from pairs sorted by confidence."""

    @final
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        confidence, correct = sorted_pairs(predictions, labels)
        edges, values = self.find_steps(confidence, correct)
        ends, device = np.append(edges, 1.0), predictions.logits.device
        self.store(
            ends=torch.from_numpy(ends).to(device), values=torch.from_numpy(values).to(device)
        )

    @final
    def compute_confidence(self, predictions: Predictions) -> PerSample:
        place = count_below(self.ends, own_confidence(predictions))
        return self.values[place.clamp_max(len(self.values) - 1)]


def equal_mass_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Edges between bins of as equal a number of the ascending values as ties allow.

    They lie halfway between two values, so equal ones share a bin; there may be fewer bins.
    """
    n = len(values)
    cuts = np.unique(np.round(np.arange(1, bins) * n / bins).astype(int))
    cuts = cuts[(cuts > 0) & (cuts < n)]
    # A cut amid ties moves to the nearer end of them.
    first, last = (np.searchsorted(values, values[cuts], side=side) for side in ("left", "right"))
    cuts = np.unique(np.where(cuts - first <= last - cuts, first, last))
    cuts = cuts[(cuts > 0) & (cuts < n)]
    edges: np.ndarray = np.unique((values[cuts - 1] + values[cuts]) / 2)
    return edges
