"""A network whose output is the logit of the confidence: a control for temperature networks.

The same evidence and network, but the loss is cross-entropy on correctness, with no temperature in
between. What a temperature network has besides its evidence are the logits that it divides; here
the image's own log-odds of the predicted class stand for them, as one more input.
"""

from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.base import Calibrator
from rightly.calibrators.evidence import EVIDENCE, image_log_odds
from rightly.calibrators.solvers.networks import (
    compute_centre_scale,
    fit_network,
    pack,
    run,
    unpack,
)
from rightly.calibrators.stored_tensors import NETWORK, SCALE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample

# Weaker than for a temperature, which starts from the classifier's own confidence: here all that
# is known comes from the weights.
DECAYS = (0.03, 0.01, 0.003)


@final
class CorrectnessNetwork(Calibrator):
    """Logistic output on the image's log-odds and evidence of correctness."""

    sorts_rows = True
    stores = {"prior": Stored(), "centre": Stored("k"), "scale": SCALE, "network_*": NETWORK}

    def __init__(
        self, evidence: str = "view_scores", *, hidden: Sequence[int] = (5,), seed: int = 0
    ) -> None:
        super().__init__()
        self.needs = EVIDENCE.find(evidence).needs
        self.is_pointwise = EVIDENCE.find(evidence).is_pointwise
        self.evidence, self.hidden, self.seed = evidence, tuple(hidden), seed

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        x = self._compute_inputs(predictions)
        centre, scale = compute_centre_scale(x)
        correct = predictions.classes == labels
        # Start at the overall accuracy, kept off 0 and 1 by two pseudo-counts.
        prior = torch.logit((correct.double().sum() + 1) / (len(correct) + 2))

        def loss_for(rows: Tensor) -> Callable[[Tensor], Tensor]:
            target = correct[rows].double()
            return lambda output: functional.binary_cross_entropy_with_logits(
                prior + output, target
            )

        x = (x - centre) / scale
        layers = fit_network(
            x, correct, loss_for, self.hidden, self.seed, DECAYS, predictions.image
        )
        self.store(prior=prior, centre=centre, scale=scale, **pack("network", layers))

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        tensors = self.stored()
        x = (self._compute_inputs(predictions) - tensors["centre"]) / tensors["scale"]
        return (tensors["prior"] + run(unpack("network", tensors), x).squeeze(-1)).sigmoid()

    def _compute_inputs(self, predictions: Predictions) -> Features:
        evidence = EVIDENCE[self.evidence](predictions)
        return torch.cat([image_log_odds(predictions)[:, None], evidence], 1)
