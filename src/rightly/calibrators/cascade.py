"""One pass for most images, the extra views only where they pay.

Views cost a forward pass each. A first calibrator, which needs none, decides every sample whose
confidence lies outside a band; inside it a second one looks at the views. With m views and a
share s of samples inside the band, an image costs 1 + m s passes on average. Of all bands that
keep to the budget, the calibration data choose the one where the views lower the squared error
most; both calibrators are judged there on samples that they were not fitted on.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch

from rightly.calibrators.base import Calibrator, Parts
from rightly.calibrators.solvers.optimise import split_rows
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

EDGES = 1000  # places where a band may begin or end


class Band(NamedTuple):
    """Confidences without views, from low to high, at which views are looked at."""

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

    band: torch.Tensor  # (2,): Band, as stored

    def __init__(self, first: Calibrator, second: Calibrator, budget: float) -> None:
        super().__init__()
        if "view_logits" in first.needs:
            raise ValueError(f"first must be a method that needs no views, got {first.title}")
        if not second.uses_views:
            raise ValueError(
                f"budget is for methods that use views, got {second.title}: leave it out"
            )
        if not budget >= 1:
            raise ValueError(
                f"budget must be at least 1, the pass over the image itself, got {budget}"
            )
        self.first, self.second, self.budget = first, second, float(budget)
        self.needs = tuple(dict.fromkeys((*first.needs, *second.needs, "view_logits")))
        self.uses_shifted_rows = second.uses_shifted_rows

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        rows = predictions.unshifted()
        unshifted, truth = predictions[rows], labels[rows]
        held_out = cross_fit(self.first, self.second, unshifted, truth)
        band = select_band(held_out, (self.budget - 1) / len(predictions.view_names))
        if self.first.uses_shifted_rows:
            self.first.learn(predictions.without_views(), labels)
        else:
            self.first.learn(unshifted.without_views(), truth)
        self.second.learn(predictions, labels)
        device = predictions.logits.device
        self.store(band=torch.tensor(band, dtype=torch.float64, device=device))

    def needs_views(self, predictions: Predictions) -> PerSampleBool:
        """The samples inside the deferral band, by the confidence without views."""
        confidence = self.first.compute_confidence(predictions.without_views()).double()
        return (confidence >= self.band[0]) & (confidence <= self.band[1])

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        return torch.where(
            self.needs_views(predictions),
            self.second.compute_confidence(predictions).double(),
            self.first.compute_confidence(predictions.without_views()).double(),
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return self.compute_parts(predictions).temperature

    def compute_probabilities(self, predictions: Predictions) -> Logits:
        return self.compute_parts(predictions).probabilities

    def compute_parts(self, predictions: Predictions) -> Parts:
        deferred = self.needs_views(predictions)
        first = self.first.compute_parts(predictions.without_views())
        second = self.second.compute_parts(predictions)
        return Parts(
            torch.where(deferred, second.confidence.double(), first.confidence.double()),
            torch.where(deferred, second.temperature.double(), first.temperature.double()),
            torch.where(deferred[:, None], second.probabilities, first.probabilities),
        )


@dataclass(frozen=True)
class HeldOut:
    """What both calibrators say about samples that they were not fitted on."""

    first: np.ndarray  # confidence without views
    second: np.ndarray  # confidence with them
    correct: np.ndarray

    def take(self, rows: np.ndarray) -> "HeldOut":
        return HeldOut(self.first[rows], self.second[rows], self.correct[rows])


def cross_fit(
    first: Calibrator, second: Calibrator, predictions: Predictions, labels: Labels
) -> HeldOut:
    """Each half judged by calibrators fitted on the other, which are left fitted on one half."""
    correct = predictions.classes == labels
    said = torch.zeros(2, len(correct), dtype=torch.float64)
    halves = split_rows(correct, seed=0, share=0.5, image=predictions.image)
    for fitted_on, judged in (halves, halves[::-1]):
        for i, (side, shown) in enumerate(
            ((first, predictions.without_views()), (second, predictions))
        ):
            side.learn(shown[fitted_on], labels[fitted_on])
            said[i, judged.cpu()] = side.compute_confidence(shown[judged]).double().cpu()
    return HeldOut(said[0].numpy(), said[1].numpy(), correct.cpu().numpy())


def select_band(judged: HeldOut, allowed: float) -> Band:
    """The run of samples, sorted by confidence and at most the allowed share, that gains most.

    Empty where no run gains anything.
    """
    gains = (judged.first - judged.correct) ** 2 - (judged.second - judged.correct) ** 2
    order = np.argsort(judged.first, kind="stable")
    places, total = judged.first[order], np.append(0.0, np.cumsum(gains[order]))
    n = len(places)
    # Samples of one confidence go together: a run begins and ends where the confidence changes.
    changes = np.concatenate([[0], np.flatnonzero(np.diff(places) > 0) + 1, [n]])
    picked = np.unique(np.linspace(0, len(changes) - 1, EDGES).round().astype(int))
    edges = changes[picked]
    length = edges[None, :] - edges[:, None]
    fits = (length > 0) & (length <= allowed * n + 1e-9)
    gain = np.where(fits, total[edges][None, :] - total[edges][:, None], -np.inf)
    start, end = np.unravel_index(np.argmax(gain), gain.shape)
    if not gain[start, end] > 0:
        return EMPTY_BAND
    return Band(float(places[edges[start]]), float(places[edges[end] - 1]))
