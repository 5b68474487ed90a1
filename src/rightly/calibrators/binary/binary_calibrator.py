"""What calibrators for two classes share: they map the log-odds of class 1 to its probability."""

from abc import abstractmethod
from typing import final

import torch

from rightly.calibrators.families import VectorCalibrator
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool


class BinaryCalibrator(VectorCalibrator):
    """Calibrates P(y = 1), not the confidence: the predicted class may change.

    A subclass writes `learn_curve` and `compute_curve`.
    """

    keeps_class = False
    fits_classes = 2
    sorts_rows = True

    @abstractmethod
    def learn_curve(self, log_odds: PerSample, is_one: PerSampleBool) -> None:
        """Fits to the classifier's log-odds of class 1 and whether it is the true class."""

    @abstractmethod
    def compute_curve(self, log_odds: PerSample) -> PerSample:
        """The probability of class 1."""

    @final
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        logits = predictions.logits
        possible = (logits > MASKED).all(-1)
        if possible.any():  # where a class is masked there is nothing to learn
            logits, labels = logits[possible], labels[possible]
        self.learn_curve(_log_odds(logits), labels == 1)

    @final
    def compute_vectors(self, logits: Logits) -> Logits:
        p = self.compute_curve(_log_odds(logits)).clamp(0, 1)
        return torch.stack([1 - p, p], -1)


def _log_odds(logits: Logits) -> PerSample:
    return logits[:, 1].double() - logits[:, 0].double()
