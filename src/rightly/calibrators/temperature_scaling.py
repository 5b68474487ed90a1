"""One temperature for all samples (Guo et al., 2017).

With cross-entropy this is temperature scaling. With the released code's class-balanced
correctness-aware loss it is a control: what lowering every confidence alone achieves.
"""

from typing import final

import torch

from rightly.calibrators.families import TemperatureCalibrator
from rightly.calibrators.solvers.temperature import fit_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.losses import loss
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample


@final
class TemperatureScaling(TemperatureCalibrator):
    """The temperature that minimises a loss over the calibration data, solved exactly."""

    stores = {"inverse": Stored(low=POSITIVE)}

    inverse: torch.Tensor

    def __init__(self, loss: str = "cross_entropy") -> None:
        super().__init__()
        self.loss = loss

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        inverse = fit_inverse_temperature(predictions.logits, labels, loss(self.loss))
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64))

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return self.inverse.reciprocal().expand(predictions.logits.shape[0])
