"""No calibration: the baseline every other one must beat."""

from collections.abc import Mapping
from typing import final

import torch

from rightly.calibrators.families import TemperatureCalibrator
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample


@final
class Uncalibrated(TemperatureCalibrator):
    """The classifier's own confidence, max softmax."""

    stores: Mapping[str, Stored] = {}

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        """Nothing to learn."""

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return torch.ones_like(predictions.logits[:, 0], dtype=torch.float64)
