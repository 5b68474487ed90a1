"""All answers of a calibrator at a context, also in a graph being traced."""

import torch
from torch import Tensor

from rightly.calibrators.adaptation.context import Context
from rightly.calibrators.adaptation.recalibration import Recalibration
from rightly.calibrators.answers import Calibrated
from rightly.calibrators.checks import bound_confidence, settle_probabilities
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.temperature import scaled_softmax
from rightly.predictions import Predictions


def complete(
    answers: Calibrated,
    predictions: Predictions,
    context: Context | Recalibration | None,
    at: Tensor | None = None,
) -> Calibrated:
    """Answers of `compute_together` as they are given: at a context, if any, and bounded."""
    if context is not None:
        answers = adjust(context, answers, context.value if at is None else at)
    classes, confidence, temperature, probabilities = answers
    confidence = bound_confidence(confidence, predictions)
    probabilities = settle_probabilities(probabilities, classes, predictions)
    return Calibrated(classes, confidence, temperature.double(), probabilities)


def adjust(context: Context | Recalibration, answers: Calibrated, at: Tensor) -> Calibrated:
    """All answers at a context; at 0 what came, bit for bit.

    Probabilities are tempered until the predicted class has the adapted confidence.
    """
    classes, confidence, temperature, probabilities = answers
    adapted = context.adjust(confidence, at)
    log_p = probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()
    inverse = inverse_temperature_for(log_p, adapted)
    tempered = scaled_softmax(log_p, inverse)
    is_unadapted = at == 0
    return Calibrated(
        classes,
        adapted,
        torch.where(is_unadapted, temperature, temperature / inverse),
        torch.where(is_unadapted, probabilities, tempered.to(probabilities.dtype)),
    )
