"""A mixture of tempered, plain and uniform probabilities (Zhang et al., 2020)."""

from itertools import combinations
from typing import final

import numpy as np
import torch

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.calibrators.solvers.temperature import fit_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.losses import squared_error
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits


@final
class EnsembleTemperatureScaling(VectorCalibrator):
    """w1 softmax(z / T) + w2 softmax(z) + w3 / c, all fitted by squared error."""

    stores = {"inverse": Stored(low=POSITIVE), "weights": Stored("3", 0, 1)}

    inverse: torch.Tensor
    weights: torch.Tensor

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits = predictions.logits
        inverse = fit_inverse_temperature(logits, labels, squared_error)
        gram, target = np.zeros((3, 3)), np.zeros(3)
        for rows in iterate_chunks(logits):
            parts = _components(logits[rows], inverse)
            gram += torch.einsum("anc,bnc->ab", parts, parts).cpu().numpy()
            true = labels[rows].expand(3, -1)[..., None]
            target += parts.gather(-1, true).sum((1, 2)).cpu().numpy()
        weights = simplex_least_squares(gram / len(logits), target / len(logits))
        self.store(
            inverse=torch.tensor(inverse, dtype=torch.float64), weights=torch.from_numpy(weights)
        )

    def compute_vectors(self, logits: Logits) -> Logits:
        parts = _components(logits, self.inverse)
        return torch.einsum("a,anc->nc", self.weights, parts)


def _components(logits: Logits, inverse: float | torch.Tensor) -> torch.Tensor:
    z = logits.double()
    return torch.stack(
        [(z * inverse).softmax(-1), z.softmax(-1), torch.full_like(z, 1 / z.shape[1])]
    )


def simplex_least_squares(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minimises w'Gw - 2t'w over non-negative weights that sum to 1.

    With three weights the optimum is found by solving on every subset that may stay positive.
    """
    best, best_value = np.eye(len(target))[0], np.inf
    indices = range(len(target))
    for size in range(1, len(target) + 1):
        for subset in combinations(indices, size):
            chosen = list(subset)
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = 2 * gram[np.ix_(chosen, chosen)]
            system[size, size] = 0
            right = np.append(2 * target[chosen], 1.0)
            # Least squares: where T is near 1 the first two components coincide.
            solved = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            weights = np.zeros(len(target))
            weights[chosen] = solved
            value = weights @ gram @ weights - 2 * target @ weights
            if (solved >= -1e-12).all() and value < best_value - 1e-15:
                best, best_value = weights.clip(0), value
    return best / best.sum()
