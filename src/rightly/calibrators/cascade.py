"""One pass for most images, the extra views only where they pay.

Views cost a forward pass each. A first calibrator, which needs none, decides every sample whose
confidence lies outside a band; inside it a second one looks at the views. With m views and a
share s of samples inside the band, an image costs 1 + m s passes on average. Of all bands that
keep to the budget, the calibration data choose the one where the views lower the squared error
most; both calibrators are judged there on samples that they were not fitted on.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from rightly.calibrators.base import Answer, Calibrator
from rightly.calibrators.solvers.optimise import split_rows
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

EDGES = 1000  # places where a band may begin or end


@final
class Cascade(Calibrator):
    """Asks `second`, which looks at views, where `first`, which does not, is in two minds."""

    band: torch.Tensor  # confidence of the first calibrator, from and to
    is_cascade = True

    def __init__(self, first: Calibrator, second: Calibrator, budget: float) -> None:
        super().__init__()
        if "view_logits" in first.needs:
            raise ValueError(f"first must be a method that needs no views, got {first.title}")
        if not second.looks_at_views:
            raise ValueError(
                f"budget is for methods that look at views, got {second.title}: leave it out"
            )
        if not budget >= 1:
            raise ValueError(
                f"budget must be at least 1, the pass over the image itself, got {budget}"
            )
        self.first, self.second, self.budget = first, second, float(budget)
        self.needs = tuple(dict.fromkeys((*first.needs, *second.needs, "view_logits")))
        self.uses_shifted_rows = second.uses_shifted_rows

    def _fit(self, predictions: Predictions, labels: Labels) -> None:
        rows = predictions.unshifted()
        plain, truth = predictions[rows], labels[rows]
        judged = held_out(self.first, self.second, plain, truth)
        low, high = best_band(judged, (self.budget - 1) / len(predictions.view_names))
        shown = predictions if self.first.uses_shifted_rows else plain
        known = labels if self.first.uses_shifted_rows else truth
        self.first._fit(shown.without_views(), known)
        self.second._fit(predictions, labels)
        self.learn(band=torch.tensor([low, high], dtype=torch.float64, device=plain.logits.device))

    def needs_views(self, predictions: Predictions) -> PerSampleBool:
        sure = self.first._confidence(predictions.without_views()).double()
        return (sure >= self.band[0]) & (sure <= self.band[1])

    def _confidence(self, predictions: Predictions) -> PerSample:
        return torch.where(
            self.needs_views(predictions),
            self.second._confidence(predictions).double(),
            self.first._confidence(predictions.without_views()).double(),
        )

    def _temperature(self, predictions: Predictions) -> PerSample:
        return self._answer(predictions).temperature

    def _probabilities(self, predictions: Predictions) -> Logits:
        return self._answer(predictions).probabilities

    def _answer(self, predictions: Predictions) -> Answer:
        asked = self.needs_views(predictions)
        first = self.first._answer(predictions.without_views())
        second = self.second._answer(predictions)
        return Answer(
            torch.where(asked, second.confidence.double(), first.confidence.double()),
            torch.where(asked, second.temperature.double(), first.temperature.double()),
            torch.where(asked[:, None], second.probabilities, first.probabilities),
        )


@dataclass(frozen=True)
class HeldOut:
    """What both calibrators say about samples that they were not fitted on."""

    first: np.ndarray  # confidence without views
    second: np.ndarray  # confidence with them
    correct: np.ndarray

    def take(self, rows: np.ndarray) -> "HeldOut":
        return HeldOut(self.first[rows], self.second[rows], self.correct[rows])


def held_out(
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
            side._fit(shown[fitted_on], labels[fitted_on])
            said[i, judged.cpu()] = side._confidence(shown[judged]).double().cpu()
    return HeldOut(said[0].numpy(), said[1].numpy(), correct.cpu().numpy())


def best_band(judged: HeldOut, allowed: float) -> tuple[float, float]:
    """The run of samples, sorted by confidence and at most the allowed share, that gains most.

    Empty, as (2, 1), where no run gains anything.
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
        return 2.0, 1.0
    return float(places[edges[start]]), float(places[edges[end] - 1])
