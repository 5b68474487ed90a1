"""Temperature scaling for domain drift (Tomani et al., 2021): fitted on perturbed images too.

The authors add noise of many strengths to validation images, from none to where accuracy is that
of chance, and fit to all of them. Here rows under a shift are such images.
"""

from typing import final

import torch
from torch import Tensor

from rightly.calibrators.families import TemperatureCalibrator
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample


@final
class PerturbedTemperature(TemperatureCalibrator):
    """One temperature for images as they are and under shifts."""

    uses_shifted_rows = True
    stores = {"inverse": Stored(low=POSITIVE), "shifted": Stored(low=0, high=1)}

    inverse: Tensor
    shifted: Tensor  # the share of calibration rows under a shift

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        inverse = nll_inverse_temperature(predictions.logits, labels)
        share = 1 - predictions.unshifted().double().mean()
        self.store(inverse=torch.tensor(inverse, dtype=torch.float64), shifted=share)

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return self.inverse.reciprocal().expand(predictions.logits.shape[0])

    @property
    def fit_note(self) -> str:
        share = self.stored().get("shifted")
        is_plain = share is not None and float(share) == 0
        return "no shifted rows to fit on: plain temperature scaling" if is_plain else ""
