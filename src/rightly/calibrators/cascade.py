"""A cascade: one forward pass for most images, views only inside a deferral band.

Views cost a forward pass each. A first calibrator, which needs none, gives the confidence of every
sample outside a band of its confidence; inside it a second one uses the views. With m views and a
share s of samples inside the band, an image costs 1 + m s passes on average. Of all bands that
keep to the budget, the one is selected where the views lower the squared error most, with both
calibrators cross-fitted.
"""

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch

from rightly.calibrators.base import CalibratedOutputs, Calibrator
from rightly.calibrators.shift_adaptation import compute_all_probabilities
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.predictions.rows import stratified_split
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

MAX_EDGES = 1000  # confidences at which a band may begin or end


class Band(NamedTuple):
    """Confidences without views, from low to high, at which views are used."""

    low: float
    high: float

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


EMPTY_BAND = Band(math.inf, -math.inf)  # no confidence lies in it
FULL_BAND = Band(0.0, 1.0)


@final
class Cascade(Calibrator):
    """Confidence of `first`, which needs no views; inside a deferral band that of `second`."""

    sorts_rows = True
    stores = {"band": Stored("2", is_finite=False)}  # an empty one is (inf, -inf)

    band: torch.Tensor  # (2,): Band, as stored

    def __init__(self, first: Calibrator, second: Calibrator, budget: float) -> None:
        super().__init__()
        if "view_logits" in first.needs:
            raise ValueError(f"first must be a method that needs no views, got {first.title}")
        if not second.uses_views:
            raise ValueError(
                f"budget is for methods that use views, got {second.title}: leave it out"
            )
        for calibrator in (first, second):
            if not calibrator.keeps_class:
                raise ValueError(
                    f"budget is for methods that keep the predicted class, got {calibrator.title}: "
                    "leave it out"
                )
        if not budget >= 1:
            raise ValueError(
                f"budget must be at least 1, the pass over the image itself, got {budget}"
            )
        self.first, self.second, self.budget = first, second, float(budget)
        self.needs = tuple(dict.fromkeys((*first.needs, *second.needs, "view_logits")))
        self.uses_shifted_rows = second.uses_shifted_rows
        self.has_temperature = first.has_temperature and second.has_temperature
        self.is_pointwise = first.is_pointwise and second.is_pointwise

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        rows = predictions.unshifted()
        unshifted, unshifted_labels = predictions[rows], labels[rows]
        held_out = cross_fit(self.first, self.second, unshifted, unshifted_labels)
        band = select_band(held_out, (self.budget - 1) / len(predictions.view_names))
        if self.first.uses_shifted_rows:
            self.first.learn(predictions.without_views(), labels)
        else:
            self.first.learn(unshifted.without_views(), unshifted_labels)
        self.second.learn(predictions, labels)
        device = predictions.logits.device
        self.store(band=torch.tensor(band, dtype=torch.float64, device=device))

    def needs_views(self, predictions: Predictions) -> PerSampleBool:
        """The samples inside the deferral band, by the confidence without views."""
        confidence = self.first.compute_confidence(predictions.without_views()).double()
        return (confidence >= self.band[0]) & (confidence <= self.band[1])

    @property
    def fit_note(self) -> str:
        notes = {part.title: part.fit_note for part in (self.first, self.second)}
        return ", ".join(f"{name} has {note}" for name, note in notes.items() if note)

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        return torch.where(
            self.needs_views(predictions),
            self.second.compute_confidence(predictions).double(),
            self.first.compute_confidence(predictions.without_views()).double(),
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        temperature = self.compute_together(predictions).temperature
        return super().compute_temperature(predictions) if temperature is None else temperature

    def compute_probabilities(self, predictions: Predictions) -> Logits:
        return compute_all_probabilities(self.compute_together(predictions), predictions)

    def compute_together(self, predictions: Predictions) -> CalibratedOutputs:
        deferred = self.needs_views(predictions)
        first = self.first.compute_together(predictions.without_views())
        second = self.second.compute_together(predictions)
        confidence = torch.where(deferred, second.confidence.double(), first.confidence.double())
        outputs = CalibratedOutputs(predictions.classes, confidence)
        if first.temperature is not None and second.temperature is not None:
            temperature = torch.where(
                deferred, second.temperature.double(), first.temperature.double()
            )
            return outputs._replace(temperature=temperature)
        own = (first.temperature, first.probabilities, second.temperature, second.probabilities)
        if all(each is None for each in own):  # one solve for the confidence gives all
            return outputs
        probabilities = torch.where(
            deferred[:, None],
            compute_all_probabilities(second, predictions),
            compute_all_probabilities(first, predictions),
        )
        return outputs._replace(probabilities=probabilities)


@dataclass(frozen=True)
class HeldOut:
    """Confidence of both calibrators on samples that they were not fitted on."""

    first: np.ndarray  # confidence without views
    second: np.ndarray  # confidence with them
    correct: np.ndarray

    def take(self, rows: np.ndarray) -> "HeldOut":
        return HeldOut(self.first[rows], self.second[rows], self.correct[rows])


def cross_fit(
    first: Calibrator, second: Calibrator, predictions: Predictions, labels: Labels
) -> HeldOut:
    """Confidence on each half by calibrators fitted on the other; they are left fitted on one."""
    correct = predictions.classes == labels
    confidence = torch.zeros(2, len(correct), dtype=torch.float64)
    halves = stratified_split(correct, seed=0, share=0.5, image=predictions.image)
    inputs = ((first, predictions.without_views()), (second, predictions))
    for train, held_out in (halves, halves[::-1]):
        for i, (calibrator, rows) in enumerate(inputs):
            with warnings.catch_warnings():  # of halves: the fit on all rows warns by itself
                warnings.simplefilter("ignore")
                calibrator.learn(rows[train], labels[train])
            outputs = calibrator.compute_confidence(rows[held_out])
            confidence[i, held_out.cpu()] = outputs.double().cpu()
    return HeldOut(confidence[0].numpy(), confidence[1].numpy(), correct.cpu().numpy())


def select_band(held_out: HeldOut, allowed: float) -> Band:
    """The run of samples, sorted by confidence, whose squared error the views lower most.

    At most the allowed share of all samples; empty where no run gains anything.
    """
    gains = (held_out.first - held_out.correct) ** 2 - (held_out.second - held_out.correct) ** 2
    order = np.argsort(held_out.first, kind="stable")
    confidence, total = held_out.first[order], np.append(0.0, np.cumsum(gains[order]))
    n = len(confidence)
    # Samples of one confidence go together: a run begins and ends where the confidence changes.
    changes = np.concatenate([[0], np.flatnonzero(np.diff(confidence) > 0) + 1, [n]])
    picked = np.unique(np.linspace(0, len(changes) - 1, MAX_EDGES).round().astype(int))
    edges = changes[picked]
    length = edges[None, :] - edges[:, None]
    fits = (length > 0) & (length <= allowed * n + 1e-9)
    gain = np.where(fits, total[edges][None, :] - total[edges][:, None], -np.inf)
    start, end = np.unravel_index(np.argmax(gain), gain.shape)
    if not gain[start, end] > 0:
        return EMPTY_BAND
    return Band(float(confidence[edges[start]]), float(confidence[edges[end] - 1]))
