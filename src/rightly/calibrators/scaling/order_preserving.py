"""Order-preserving scaling (Rahimi et al., 2020): one rising function of all logits of a row.

Their diagonal form applies the same increasing function to every logit. Here it is a function of
how far a logit lies below the largest, straight between knots, with positive slopes: cross-entropy
is convex in these, where the authors train a monotone network.
"""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers import lbfgs
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits

KNOTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # below the largest, in logits over the temperature
LEAST_SLOPE = 1e-3  # so that the order of logits stays


@final
class OrderPreserving(VectorCalibrator):
    """softmax of f(z_j - max z), f piecewise linear and increasing."""

    sorts_rows = True
    stores = {
        "inverse": Stored(low=POSITIVE),
        "slopes": Stored(str(len(KNOTS) + 1), low=LEAST_SLOPE),
    }

    inverse: Tensor
    slopes: Tensor  # from the largest logit down

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits, n = predictions.logits, len(predictions)
        inverse = nll_inverse_temperature(logits, labels)
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64, device=logits.device))

        def loss(slopes: Tensor) -> Tensor:
            """Cross-entropy, and the squared distance to temperature scaling as one sample."""
            value, slope = (slopes - 1).square().sum(), 2 * (slopes - 1)
            for rows in iterate_chunks(logits):
                depth, true = self._depth(logits[rows]), labels[rows, None]
                log_p = (-_apply(depth, slopes)).log_softmax(-1)
                value = value - log_p.gather(-1, true).sum()
                residual = log_p.exp()
                residual.scatter_add_(-1, true, -torch.ones_like(true, dtype=residual.dtype))
                sums = [(residual * part).sum() for part in _iterate_segments(depth)]
                slope = slope - torch.stack(sums)
            return torch.cat([value[None], slope]) / n

        start = torch.ones(len(KNOTS) + 1, dtype=torch.float64, device=logits.device)
        bounds = [(LEAST_SLOPE, None)] * len(start)
        found = lbfgs.minimise(loss, start, bounds, tol=1e-14, gradient_tol=1e-9)
        self.store(slopes=found.x)

    def compute_vectors(self, logits: Logits) -> Logits:
        return (-_apply(self._depth(logits), self.slopes)).softmax(-1)

    def _depth(self, logits: Logits) -> Logits:
        return (logits.amax(-1, keepdim=True) - logits).double() * self.inverse


def _apply(depth: Logits, slopes: Tensor) -> Logits:
    """How far each logit lies below the largest once lengths between knots are scaled."""
    total = torch.zeros_like(depth)
    for slope, part in zip(slopes, _iterate_segments(depth), strict=True):
        total = total + slope * part
    return total


def _iterate_segments(depth: Logits) -> list[Logits]:
    """How much of each depth lies between neighbouring knots; all of them sum to it."""
    starts = (0.0, *KNOTS)
    inner = [(depth - low).clamp(0, high - low) for low, high in zip(starts, KNOTS, strict=False)]
    return [*inner, (depth - KNOTS[-1]).clamp_min(0)]
