"""Families of calibrators: those that divide logits, and those that map them to vectors."""

from abc import abstractmethod
from typing import final

import torch
from torch import Tensor

from rightly.calibrators.base import Calibrated, Calibrator
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.calibrators.solvers.temperature import (
    inverse_temperature_for,
    scaled_softmax,
    top_probability,
)
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.predictions.masking import exclude_masked
from rightly.tensor_shapes import Labels, Logits, PerSample

ONE_TEMPERATURE = 1e-6  # spread below which temperatures differ by rounding only
TEMPERATURE_SPREAD = {"temperature_spread": Stored(low=0)}


class TemperatureCalibrator(Calibrator):
    """Divides logits by a positive temperature, so the predicted class never changes."""

    @abstractmethod
    def compute_temperature(self, predictions: Predictions) -> PerSample: ...

    @final
    def compute_confidence(self, predictions: Predictions) -> PerSample:
        inverse = self.compute_temperature(predictions).reciprocal()
        return top_probability(predictions.logits, inverse)

    @final
    def compute_together(self, predictions: Predictions) -> Calibrated:
        temperature = self.compute_temperature(predictions)
        probabilities = scaled_softmax(predictions.logits, temperature.reciprocal())
        confidence = top_probability(predictions.logits, temperature.reciprocal())
        return Calibrated(predictions.classes, confidence, temperature, probabilities)


class PerSampleTemperatureCalibrator(TemperatureCalibrator):
    """Learns a temperature for each sample, and says where it found one for all of them.

    A subclass writes `learn_temperature` and `compute_temperature`, and lists TEMPERATURE_SPREAD
    among what it stores.
    """

    sorts_rows = True

    temperature_spread: Tensor  # standard deviation over mean of T, on the calibration rows

    @abstractmethod
    def learn_temperature(self, predictions: Predictions, labels: Labels) -> None:
        """Fits to checked predictions; all that is learned goes through `store`."""

    @final
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        self.learn_temperature(predictions, labels)
        std, mean = torch.std_mean(self.compute_temperature(predictions), correction=0)
        self.store(temperature_spread=std / mean)

    @property
    def fit_note(self) -> str:
        spread = self.stored().get("temperature_spread")
        is_one = spread is not None and float(spread) < ONE_TEMPERATURE
        return "one temperature for all samples" if is_one else ""


class VectorCalibrator(Calibrator):
    """Maps logits to a probability vector of its own; confidence is read from that."""

    @abstractmethod
    def compute_vectors(self, logits: Logits) -> Logits: ...

    @final
    def compute_probabilities(self, predictions: Predictions) -> Logits:
        logits = predictions.logits
        vectors = torch.cat([self.compute_vectors(logits[rows]) for rows in iterate_chunks(logits)])
        return exclude_masked(vectors, logits) if predictions.has_masked else vectors

    @final
    def compute_classes(self, predictions: Predictions) -> Labels:
        if self.keeps_class:
            return predictions.classes
        return self.compute_probabilities(predictions).argmax(-1)

    @final
    def compute_confidence(self, predictions: Predictions) -> PerSample:
        parts = []
        for rows in iterate_chunks(predictions.logits):
            logits = predictions.logits[rows]
            vectors = self.compute_vectors(logits)
            if predictions.has_masked:
                vectors = exclude_masked(vectors, logits)
            leading = logits if self.keeps_class else vectors
            parts.append(vectors.gather(-1, leading.argmax(-1, keepdim=True)).squeeze(-1))
        return torch.cat(parts)

    @final
    def compute_together(self, predictions: Predictions) -> Calibrated:
        probabilities = self.compute_probabilities(predictions)
        classes = predictions.classes if self.keeps_class else probabilities.argmax(-1)
        confidence = probabilities.gather(-1, classes[:, None]).squeeze(-1)
        inverse = inverse_temperature_for(predictions.logits, confidence)
        return Calibrated(classes, confidence, inverse.reciprocal(), probabilities)
