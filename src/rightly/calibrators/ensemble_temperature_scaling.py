"""A mixture of tempered, plain and uniform probabilities (Zhang et al., 2020)."""

from itertools import combinations
from typing import final

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers.execution import Scratch, exp_up_to_scale, iterate_chunks
from rightly.calibrators.solvers.temperature import fit_inverse_temperature, top_probability
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.losses import squared_error
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample


@final
class EnsembleTemperatureScaling(VectorCalibrator):
    """w1 softmax(z / T) + w2 softmax(z) + w3 / c, all fitted by squared error."""

    stores = {"inverse": Stored(low=POSITIVE), "weights": Stored("3", 0, 1)}

    inverse: Tensor
    weights: Tensor

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits = predictions.logits
        inverse = fit_inverse_temperature(logits, labels, squared_error)
        n, c = logits.shape
        sums, scratch = torch.zeros(5, dtype=torch.float64, device=logits.device), Scratch()
        for rows in iterate_chunks(logits):
            e = _exponentials(logits[rows], inverse, scratch)
            totals = [part.sum(-1).double() for part in e]
            true = labels[rows, None]
            for i, (a, b) in enumerate(((0, 0), (0, 1), (1, 1))):
                inner = torch.linalg.vecdot(e[a], e[b]).double()
                sums[i] += (inner / (totals[a] * totals[b])).sum()
            for i in range(2):
                sums[3 + i] += (e[i].gather(-1, true).squeeze(-1).double() / totals[i]).sum()
        pp, pq, qq, p_true, q_true = (sums / n).tolist()
        # A probability vector's product with the uniform one is 1 / c.
        gram = np.array([[pp, pq, 1 / c], [pq, qq, 1 / c], [1 / c, 1 / c, 1 / c]])
        weights = simplex_least_squares(gram, np.array([p_true, q_true, 1 / c]))
        self.store(
            inverse=torch.tensor(inverse, dtype=torch.float64), weights=torch.from_numpy(weights)
        )

    def compute_vectors(self, logits: Logits) -> Logits:
        tempered, plain = _exponentials(logits, self.inverse, Scratch())
        return self._mix(tempered.double(), plain.double())

    def write_vectors(self, logits: Logits, out: Logits, scratch: Scratch) -> None:
        tempered, plain = _exponentials(logits, self.inverse, scratch)
        self._mix(out.copy_(tempered), scratch.copy("plain", plain, torch.float64))

    def _mix(self, tempered: Logits, plain: Logits) -> Logits:
        """The weighted sum of rows divided by their sums, in the place of the first."""
        for part, weight in zip((tempered, plain), self.weights[:2], strict=True):
            part.mul_(weight / part.sum(-1, keepdim=True))
        return tempered.add_(plain).add_(self.weights[2] / tempered.shape[1])

    def compute_entries(self, logits: Logits, classes: Labels, scratch: Scratch) -> PerSample:
        tempered, plain, uniform = self.weights
        one = torch.ones(len(logits), dtype=torch.float64, device=logits.device)
        return (
            tempered * top_probability(logits, self.inverse * one, classes, scratch)
            + plain * top_probability(logits, one, classes, scratch)
            + uniform / logits.shape[1]
        )


def _exponentials(
    logits: Logits, inverse: float | Tensor, scratch: Scratch
) -> tuple[Logits, Logits]:
    """exp(b z) and exp(z), up to a factor of each row."""
    gaps = torch.sub(logits, logits.amax(-1, keepdim=True), out=scratch.take("gaps", logits))
    # The first is computed from the gaps, the second in their place.
    tempered = exp_up_to_scale(torch.mul(gaps, inverse, out=scratch.take("e", logits)))
    return tempered, exp_up_to_scale(gaps)


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
