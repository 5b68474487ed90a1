"""Calibrators that are adapted to each test set before they are measured on it."""

import warnings
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from rightly.calibrators import AnyCalibrator
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample


@final
class BatchAdapted:
    """A calibrator that is adapted to what it is asked about: one batch, or many in row order."""

    def __init__(self, calibrator: AnyCalibrator, batch: int | None = None) -> None:
        self.calibrator, self.batch = calibrator, batch

    @property
    def title(self) -> str:
        return self.calibrator.title

    def select_views(self, predictions: Predictions) -> Predictions:
        return self.calibrator.select_views(predictions)

    def classes(self, predictions: Predictions) -> Labels:
        return self.calibrator.classes(predictions)

    def confidence(self, predictions: Predictions) -> PerSample:
        return self._ask(predictions, lambda adapted, part: adapted.confidence(part))

    def temperature(self, predictions: Predictions) -> PerSample:
        return self._ask(predictions, lambda adapted, part: adapted.temperature(part))

    def probabilities(self, predictions: Predictions) -> Logits:
        return self._ask(predictions, lambda adapted, part: adapted.probabilities(part))

    def _ask(
        self, predictions: Predictions, answer: Callable[[AnyCalibrator, Predictions], Tensor]
    ) -> Tensor:
        if self.batch is None:
            return answer(self.calibrator.adapt(predictions), predictions)
        starts = range(0, len(predictions), self.batch)
        # The estimates of small batches are often chance, and each would be warned of.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the shift estimate of this batch")
            parts = (predictions[start : start + self.batch] for start in starts)
            return torch.cat([answer(self.calibrator.adapt(part), part) for part in parts])


MeasuredCalibrator = AnyCalibrator | BatchAdapted


def check_batch(adapt: bool, batch: int | None) -> None:
    """Refuses a size of batches that is none, or that nothing is adapted to."""
    if batch is None:
        return
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ValueError(
            f"batch must be a whole number of rows from 1, got {batch!r}: pass for instance 64"
        )
    if not adapt:
        raise ValueError(f"batch must come with adapt=True, got {batch} without it: add adapt=True")


def adapt_to_sets(
    calibrator: AnyCalibrator, adapt: bool = True, batch: int | None = None
) -> MeasuredCalibrator:
    """The calibrator as it is measured: as it is, or adapted to each test set."""
    return BatchAdapted(calibrator, batch) if adapt else calibrator
