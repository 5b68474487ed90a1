"""A mixture of two temperatures whose shares depend on the sample by a logistic curve.

Mixtures of experts with logistic gates are Jacobs et al.'s (1991); here each expert is a
temperature. Where a classifier is too sure of its hard samples but not of its easy ones, no single
temperature serves both.
"""

import math
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers import lbfgs
from rightly.calibrators.solvers.execution import single_threaded
from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.calibrators.solvers.temperature import (
    nll_inverse_temperature,
    scaled_softmax,
    top_probability,
)
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample

RANGE = 3.0  # how far, in its logarithm, a temperature may lie from temperature scaling's
SPREADS = (0.3, 1.0)  # starts: temperatures this far to both sides of it
MAX_LOG_ODDS = 20.0
RIDGE = 1e-4  # keeps the gate finite where the experts are one


@final
class LogisticMixture(VectorCalibrator):
    """(1 - g) softmax(z / T0) + g softmax(z / T1), g logistic in the tempered log-odds."""

    sorts_rows = True
    stores = {
        "inverse": Stored(low=POSITIVE),
        "inverses": Stored("2", low=POSITIVE),
        "gate": Stored("2"),
    }

    inverse: Tensor  # of temperature scaling, at which the gate looks
    inverses: Tensor
    gate: Tensor  # level and slope over log-odds

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits = predictions.logits
        inverse = nll_inverse_temperature(logits, labels)
        near, reach = math.log(inverse), math.exp(RANGE)
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64, device=logits.device))
        data = CalibrationData.of(logits, labels, inverse / reach, inverse * reach)
        log_odds = self._log_odds(logits)
        one = torch.ones_like(log_odds)

        def loss(point: Tensor) -> Tensor:
            low, high, level, slope = point
            gate = level + slope * log_odds
            first = data.scores(low * one).true_log_probability + logsigmoid(-gate)
            second = data.scores(high * one).true_log_probability + logsigmoid(gate)
            ridge = RIDGE * (level.square() + slope.square())
            return ridge - torch.logaddexp(first, second).mean()

        within = (near - RANGE, near + RANGE)
        bounds = [within, within, (None, None), (None, None)]
        with single_threaded():
            fits = [
                lbfgs.minimise(
                    lbfgs.differentiate(loss),
                    log_odds.new_tensor([near - spread, near + spread, 0.0, 0.5]),
                    bounds,
                )
                for spread in SPREADS
            ]
        found = min(fits, key=lambda fit: fit.value).x
        self.store(inverses=found[:2].exp(), gate=found[2:])

    def compute_vectors(self, logits: Logits) -> Logits:
        one = torch.ones_like(logits[:, 0], dtype=torch.float64)
        share = (self.gate[0] + self.gate[1] * self._log_odds(logits)).sigmoid()[:, None]
        first, second = (scaled_softmax(logits, inverse * one) for inverse in self.inverses)
        return (1 - share) * first + share * second

    def _log_odds(self, logits: Logits) -> PerSample:
        one = torch.ones_like(logits[:, 0], dtype=torch.float64)
        confidence = top_probability(logits, self.inverse * one)
        return torch.logit(confidence, eps=1e-15).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)
