"""The contract every calibrator signs."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import torch
from torch import Tensor, nn

from rightly.calibrators import serialization as saved
from rightly.calibrators.solvers.margin_table import (
    chunks,
    inverse_temperature_for,
    keep_class,
    scaled_softmax,
    top_probability,
)
from rightly.calibrators.solvers.optimise import one_thread
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

Fitted = TypeVar("Fitted", bound="Calibrator")

FEW = 2**21
FITTED_ON = ("class_count", "view_names", "feature_count", "class_names")


class Answer(NamedTuple):
    """All that a calibrator says about some predictions, worked out together."""

    confidence: PerSample
    temperature: PerSample
    probabilities: Logits


class NotFittedError(RuntimeError):
    """A calibrator was asked for confidence before it saw any labels."""


class Calibrator(nn.Module, ABC):
    """Turns predictions into the probability that each one is correct.

    All that a calibrator learned is in its buffers, by flat names, so that one way of saving,
    loading and moving between devices serves them all.
    """

    needs: tuple[str, ...] = ()  # fields of Predictions without which it cannot work
    uses: tuple[str, ...] = ()  # fields it looks at where it was fitted with them
    uses_shifted_rows = False
    is_pointwise = True  # False where the answer depends on the rest of a batch
    is_cascade = False  # True where `needs_views` may spare some samples their views

    # Who it is: set by `rightly.calibrator`, stored in the file.
    method: str | None = None
    arguments: Mapping[str, Any] = {}

    # What it was fitted on: predictions that differ in these are refused.
    class_count: int | None = None
    view_names: tuple[str, ...] = ()
    feature_count: int | None = None
    class_names: tuple[str, ...] | None = None

    # What goes with it: a prediction is accepted where its confidence reaches the threshold, and
    # the record says where the calibrator comes from (see fitting.py).
    threshold: float | None = None
    record: Mapping[str, Any] = {}

    @final
    def fit(self: Fitted, predictions: Predictions, labels: AnyArray) -> Fitted:
        """Learn from held-out predictions whose labels are known."""
        _must_be_predictions(predictions)
        known = check_labels(labels, predictions)
        for need in self.needs:
            if getattr(predictions, need) is None:
                raise ValueError(
                    f"{self.title} needs predictions with {need}, but these have none: "
                    f"collect them, or choose a method that does not need {need}"
                )
        rows = predictions.unshifted()
        if not rows.any():
            raise ValueError(
                "shift must be 0 for some rows to fit on, but every row is shifted: "
                "add the images as they are"
            )
        if not self.uses_shifted_rows and not rows.all():
            predictions, known = predictions[rows], known[rows]
        _warn_if_one_sided(predictions.classes == known, self.title)
        self.class_count = None
        # Threads only get in each other's way on arrays that fit into a cache.
        few = predictions.logits.numel() <= FEW
        with torch.no_grad(), one_thread() if few else nullcontext():
            self.to(predictions.logits.device)
            self._fit(predictions, known)
        self.class_count = predictions.class_count
        self.class_names = predictions.class_names
        self.view_names = predictions.view_names if self.looks_at_views else ()
        features = predictions.features if "features" in self.needs + self.uses else None
        self.feature_count = None if features is None else features.shape[1]
        return self

    @final
    @torch.no_grad()
    def confidence(self, predictions: Predictions) -> PerSample:
        """Probability that each predicted class is right."""
        self._check(predictions)
        return self._confidence(predictions).double().clamp(0, 1)

    @final
    @torch.no_grad()
    def temperature(self, predictions: Predictions) -> PerSample:
        """What each row's logits are divided by to give its confidence."""
        self._check(predictions)
        return self._temperature(predictions).double()

    @final
    @torch.no_grad()
    def probabilities(self, predictions: Predictions) -> Logits:
        """A probability for every class; the predicted class stays on top."""
        self._check(predictions)
        return keep_class(self._probabilities(predictions), predictions.classes)

    @final
    def accept(self, predictions: Predictions) -> PerSampleBool:
        """Whether each prediction is sure enough to act on."""
        if self.threshold is None:
            raise ValueError(
                f"{self.title} has no threshold to accept by: set calibrator.threshold, or fit "
                "with --threshold or --accuracy"
            )
        return self.confidence(predictions) >= self.threshold

    def needs_views(self, predictions: Predictions) -> PerSampleBool:
        """The samples whose views have to be looked at, by what was said without any."""
        return torch.ones_like(predictions.logits[:, 0], dtype=torch.bool)

    @final
    def answer(self, predictions: Predictions) -> Answer:
        """Confidence, temperature and probabilities at once, unchecked: what is exported."""
        confidence, temperature, probabilities = self._answer(predictions)
        return Answer(
            confidence.double().clamp(0, 1),
            temperature.double(),
            keep_class(probabilities, predictions.classes),
        )

    @final
    def select_views(self, predictions: Predictions) -> Predictions:
        """The predictions with the views that it was fitted on, whatever others they have."""
        if not self.view_names or predictions.view_names == self.view_names:
            return predictions
        return predictions.with_views(self.view_names)

    @property
    def looks_at_views(self) -> bool:
        return "view_logits" in self.needs + self.uses

    @property
    def title(self) -> str:
        return self.method or type(self).__name__

    @property
    def is_fitted(self) -> bool:
        return self.class_count is not None

    @final
    def learn(self, **tensors: Tensor) -> None:
        """Keep what was learned, under names that also stand in the saved file."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.detach().clone())

    @final
    def learned(self) -> dict[str, Tensor]:
        return dict(self.named_buffers())

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to one safetensors file, for `rightly.load_calibrator`."""
        if not self.is_fitted:
            raise NotFittedError(f"{self.title} has learned nothing yet: call fit before save")
        if self.method is None:
            raise ValueError(
                f"{self.title} has no name in the registry to be loaded by: "
                "build it with rightly.calibrator(name)"
            )
        header: dict[str, Any] = {"method": self.method, "arguments": dict(self.arguments)}
        header |= {name: getattr(self, name) for name in FITTED_ON}
        header |= {"threshold": self.threshold, "record": dict(self.record)}
        saved.write(Path(path), header, self.learned())

    @final
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take over what a saved file holds."""
        for path, tensor in tensors.items():
            part, _, name = path.rpartition(".")  # a calibrator may be made of others
            self.get_submodule(part).register_buffer(name, tensor.detach().clone())
        for name in FITTED_ON:
            value = header[name]
            setattr(self, name, tuple(value) if isinstance(value, list) else value)
        threshold, record = header.get("threshold"), header.get("record") or {}
        if not isinstance(threshold, float | None) or not isinstance(record, dict):
            raise ValueError(f"threshold and record must be a number and a table, got {threshold}")
        self.threshold, self.record = threshold, record

    @abstractmethod
    def _fit(self, predictions: Predictions, labels: Labels) -> None: ...

    @abstractmethod
    def _confidence(self, predictions: Predictions) -> PerSample: ...

    def _temperature(self, predictions: Predictions) -> PerSample:
        confidence = self._confidence(predictions)
        return inverse_temperature_for(predictions.logits, confidence).reciprocal()

    def _probabilities(self, predictions: Predictions) -> Logits:
        return scaled_softmax(predictions.logits, self._temperature(predictions).reciprocal())

    def _answer(self, predictions: Predictions) -> Answer:
        confidence = self._confidence(predictions)
        inverse = inverse_temperature_for(predictions.logits, confidence)
        return Answer(confidence, inverse.reciprocal(), scaled_softmax(predictions.logits, inverse))

    def _check(self, predictions: Predictions) -> None:
        if not self.is_fitted:
            raise NotFittedError(f"{self.title} has learned nothing yet: call fit first")
        _must_be_predictions(predictions)
        if predictions.class_count != self.class_count:
            raise ValueError(
                f"predictions must have {self.class_count} classes like those {self.title} was "
                f"fitted on, got {predictions.class_count}"
            )
        for need in self.needs:
            if getattr(predictions, need) is None:
                raise ValueError(f"{self.title} needs predictions with {need}, got none")
        if self.view_names and predictions.view_names != self.view_names:
            raise ValueError(
                f"predictions must have the views {list(self.view_names)} in this order, like "
                f"those {self.title} was fitted on, got {list(predictions.view_names)}: "
                "choose them with predictions.with_views(...)"
            )
        if self.feature_count and predictions.features is not None:
            found = predictions.features.shape[1]
            if found != self.feature_count:
                raise ValueError(
                    f"features must have {self.feature_count} columns like those {self.title} "
                    f"was fitted on, got {found}"
                )
        self.to(predictions.logits.device)


class TemperatureCalibrator(Calibrator):
    """Divides logits by a positive temperature, so the predicted class never changes."""

    @abstractmethod
    def _temperature(self, predictions: Predictions) -> PerSample: ...

    @final
    def _confidence(self, predictions: Predictions) -> PerSample:
        return top_probability(predictions.logits, self._temperature(predictions).reciprocal())

    @final
    def _answer(self, predictions: Predictions) -> Answer:
        temperature = self._temperature(predictions)
        probabilities = scaled_softmax(predictions.logits, temperature.reciprocal())
        confidence = top_probability(predictions.logits, temperature.reciprocal())
        return Answer(confidence, temperature, probabilities)


class VectorCalibrator(Calibrator):
    """Maps logits to a whole probability vector of its own; confidence is read from that."""

    @abstractmethod
    def _vectors(self, logits: Logits) -> Logits: ...

    @final
    def _probabilities(self, predictions: Predictions) -> Logits:
        return torch.cat(
            [self._vectors(predictions.logits[rows]) for rows in chunks(predictions.logits)]
        )

    @final
    def _confidence(self, predictions: Predictions) -> PerSample:
        parts = []
        for rows in chunks(predictions.logits):
            z = predictions.logits[rows]
            parts.append(self._vectors(z).gather(-1, z.argmax(-1, keepdim=True)).squeeze(-1))
        return torch.cat(parts)

    @final
    def _answer(self, predictions: Predictions) -> Answer:
        probabilities = self._probabilities(predictions)
        confidence = probabilities.gather(-1, predictions.classes[:, None]).squeeze(-1)
        inverse = inverse_temperature_for(predictions.logits, confidence)
        return Answer(confidence, inverse.reciprocal(), probabilities)


def _must_be_predictions(predictions: object) -> None:
    if not isinstance(predictions, Predictions):
        raise TypeError(
            f"predictions must be a rightly.Predictions, got {type(predictions).__name__}: "
            "wrap logits as rightly.Predictions(logits)"
        )


def _warn_if_one_sided(correct: Tensor, title: str) -> None:
    if bool(correct.all()) or not bool(correct.any()):
        side, lesson = ("right", "1") if bool(correct.all()) else ("wrong", "its lowest value")
        warnings.warn(
            f"all {len(correct)} calibration samples are predicted {side}: {title} can only learn "
            f"to push confidence towards {lesson}; calibrate on data with both",
            UserWarning,
            stacklevel=3,
        )
