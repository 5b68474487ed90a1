"""Families of calibrators: those that divide logits, and those that map them to vectors."""

from abc import abstractmethod
from typing import final

import torch
from torch import Tensor

from rightly.calibrators.base import CalibratedOutputs, Calibrator
from rightly.calibrators.solvers.execution import Scratch, allocate_like, iterate_chunks
from rightly.calibrators.solvers.temperature import top_probability
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.predictions.masking import exclude_masked
from rightly.tensor_shapes import Labels, Logits, PerSample

ONE_TEMPERATURE = 1e-6  # spread below which temperatures differ by rounding only
TEMPERATURE_SPREAD = {"temperature_spread": Stored(low=0)}


class TemperatureCalibrator(Calibrator):
    """Divides logits by a positive temperature, so the predicted class never changes."""

    has_temperature = True

    @abstractmethod
    def compute_temperature(self, predictions: Predictions) -> PerSample: ...

    @final
    def compute_confidence(self, predictions: Predictions) -> PerSample:
        inverse = self.compute_temperature(predictions).reciprocal()
        return top_probability(predictions.logits, inverse, predictions.classes)

    @final
    def compute_together(self, predictions: Predictions) -> CalibratedOutputs:
        temperature, classes = self.compute_temperature(predictions), predictions.classes
        confidence = top_probability(predictions.logits, temperature.reciprocal(), classes)
        return CalibratedOutputs(classes, confidence, temperature)


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

    def compute_entries(self, logits: Logits, classes: Labels, scratch: Scratch) -> PerSample:
        """The entry of each row's vector for its class; override it where that is cheaper."""
        return self.compute_vectors(logits).gather(-1, classes[:, None]).squeeze(-1)

    def write_vectors(self, logits: Logits, out: Logits, scratch: Scratch) -> None:
        """Writes `compute_vectors` of a chunk to out; override it where memory can be reused."""
        out.copy_(self.compute_vectors(logits))

    @final
    def compute_probabilities(self, predictions: Predictions) -> Logits:
        logits = predictions.logits
        if torch.compiler.is_exporting():
            return exclude_masked(self.compute_vectors(logits), logits)
        vectors, scratch = allocate_like(logits), Scratch()
        for rows in iterate_chunks(logits):
            self.write_vectors(logits[rows], vectors[rows], scratch)
            if predictions.has_masked:
                vectors[rows] = exclude_masked(vectors[rows], logits[rows])
        return vectors

    @final
    def compute_classes(self, predictions: Predictions) -> Labels:
        if self.keeps_class:
            return predictions.classes
        return self.compute_probabilities(predictions).argmax(-1)

    @final
    def classes_of(self, probabilities: Logits, predictions: Predictions) -> Labels:
        return predictions.classes if self.keeps_class else probabilities.argmax(-1)

    @final
    def compute_confidence(self, predictions: Predictions) -> PerSample:
        if predictions.has_masked or not self.keeps_class:
            probabilities = self.compute_probabilities(predictions)
            classes = self.classes_of(probabilities, predictions)
            return probabilities.gather(-1, classes[:, None]).squeeze(-1)
        logits, classes, scratch = predictions.logits, predictions.classes, Scratch()
        return torch.cat(
            [
                self.compute_entries(logits[rows], classes[rows], scratch)
                for rows in iterate_chunks(logits)
            ]
        )

    @final
    def compute_together(self, predictions: Predictions) -> CalibratedOutputs:
        probabilities = self.compute_probabilities(predictions)
        classes = self.classes_of(probabilities, predictions)
        confidence = probabilities.gather(-1, classes[:, None]).squeeze(-1)
        return CalibratedOutputs(classes, confidence, probabilities=probabilities)
