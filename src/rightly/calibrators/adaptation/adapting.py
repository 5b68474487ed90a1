"""Calibrators adapted to unlabelled batches, and the accuracy that is expected on these."""

import copy
import warnings
from typing import TYPE_CHECKING

import torch

from rightly.calibrators.adaptation.context import (
    BatchContext,
    Context,
    NoContextError,
)
from rightly.calibrators.adaptation.learning import learn_context
from rightly.calibrators.checks import bound_confidence
from rightly.decisions.expected_accuracy import ExpectedAccuracy
from rightly.predictions import Predictions
from rightly.tensor_shapes import PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator


def find_context(calibrator: "Calibrator") -> Context:
    """What the calibrator knows about contexts, learned now if it was not before."""
    if calibrator.calibration_rows is not None:
        data, calibrator.calibration_rows = calibrator.calibration_rows, None
        try:
            with torch.no_grad():
                learned = learn_context(calibrator, data.unfitted, data.predictions, data.labels)
            calibrator.context = learned.to(data.predictions.logits.device)
        except NoContextError as error:
            calibrator.no_context = str(error)
    if calibrator.context is None:
        reason = calibrator.no_context or "it was fitted without"
        raise NoContextError(f"{calibrator.title} cannot be adapted: {reason}")
    return calibrator.context


def adapt(calibrator: "Calibrator", unlabelled: Predictions) -> "Calibrator":
    """A copy of the calibrator at the context of this batch, whatever it was adapted to before."""
    if calibrator.adapts_itself and calibrator.recalibration is None:
        calibrator.check(unlabelled)
        _check_rows(unlabelled)
        own = copy.deepcopy(calibrator)
        with torch.no_grad():
            own.adapt_to(unlabelled)
        own.context = own.calibration_rows = None
        own.no_context = "it is adapted to a batch in its own way"
        return own
    context, batch, _ = _look_at(calibrator, unlabelled)
    if batch.is_clipped:
        low, high = (float(x) for x in context.limits)
        warnings.warn(
            f"the context of this batch, {batch.mean_residual:.2f}, lies beyond those that "
            f"{calibrator.title} learned from, {low:.2f} to {high:.2f}, and is clipped: its "
            "confidence may still be off; label some of it",
            UserWarning,
            stacklevel=3,
        )
    adapted = copy.deepcopy(calibrator)
    assert adapted.context is not None
    adapted.context.register_buffer("value", context.value.new_tensor(batch.value))
    return adapted


def expected_accuracy(
    calibrator: "Calibrator", unlabelled: Predictions, level: float
) -> ExpectedAccuracy:
    """How often the classifier is right on this batch, with an expected range at this level."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    context, batch, confidence = _look_at(calibrator, unlabelled)
    return context.expected_accuracy(confidence, batch, level)


def score_contexts(
    calibrator: "Calibrator", predictions: Predictions
) -> tuple[PerSample, PerSample]:
    """What each sample adds to the context of its batch, which the mean of all is; and its
    unadapted confidence."""
    context, _, confidence = _look_at(calibrator, predictions)
    with torch.no_grad():
        return context.residuals(confidence, calibrator.compute_classes(predictions)), confidence


def _look_at(
    calibrator: "Calibrator", unlabelled: Predictions
) -> tuple[Context, BatchContext, PerSample]:
    """Unadapted confidences of a batch, and its context."""
    context = find_context(calibrator)
    calibrator.check(unlabelled)
    _check_rows(unlabelled)
    with torch.no_grad():
        confidence = bound_confidence(calibrator.compute_confidence(unlabelled), unlabelled)
        classes = calibrator.compute_classes(unlabelled)
        return context, context.measure(confidence, classes), confidence


def _check_rows(unlabelled: Predictions) -> None:
    if not len(unlabelled):
        raise ValueError("unlabelled must hold at least one prediction, got none")
