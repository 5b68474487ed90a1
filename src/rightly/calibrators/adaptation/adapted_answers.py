"""Outputs of a calibrator at a shift estimate, also in a graph being traced."""

from typing import NamedTuple

import torch
from torch import Tensor

from rightly.calibrators.adaptation.context import Context
from rightly.calibrators.adaptation.recalibration import Recalibration
from rightly.calibrators.answers import CalibratedOutputs
from rightly.calibrators.checks import bound_confidence, settle_probabilities
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.execution import allocate_like, iterate_chunks
from rightly.calibrators.solvers.temperature import mark_class, scaled_softmax
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, count_possible, settle_confidence
from rightly.tensor_shapes import Labels, Logits, PerSample

MIN_WEIGHT = 1e-6  # of the sharper distribution: below confidence 1 / c, classes keep their order
TINY = 1e-37  # float32, which the constants of a graph are, holds it


class FinalOutputs(NamedTuple):
    """Adapted outputs within their bounds."""

    classes: Labels
    confidence: PerSample
    probabilities: Logits
    unadapted_confidence: PerSample
    temperature: PerSample | None  # what the method divides logits by, before any adaptation


def compute_all_probabilities(outputs: CalibratedOutputs, predictions: Predictions) -> Logits:
    """The outputs' own probabilities, or softmax(z / T) at the temperature of the confidence."""
    if outputs.probabilities is not None:
        return outputs.probabilities
    if outputs.temperature is not None:
        inverse = outputs.temperature.reciprocal()
    else:
        inverse = inverse_temperature_for(
            predictions.logits, outputs.confidence, predictions.classes
        )
    return scaled_softmax(predictions.logits, inverse)


def finalise_outputs(
    outputs: CalibratedOutputs,
    predictions: Predictions,
    adaptation: Context | Recalibration | None,
    at: Tensor | None = None,
) -> FinalOutputs:
    """The outputs adapted to the shift estimate `at`, by default to the adaptation's own."""
    confidence = unadapted = bound_confidence(outputs.confidence, predictions)
    probabilities = compute_all_probabilities(outputs, predictions)
    if adaptation is not None:
        estimate = adaptation.value if at is None else at
        confidence = adaptation.adjust(unadapted, estimate)
        if predictions.has_masked:
            confidence = settle_confidence(confidence, predictions.logits)
        adapted = match_confidence(probabilities, outputs.classes, confidence, predictions.logits)
        probabilities = torch.where(estimate == 0, probabilities, adapted)
    probabilities = settle_probabilities(probabilities, outputs.classes, predictions)
    return FinalOutputs(outputs.classes, confidence, probabilities, unadapted, outputs.temperature)


def match_confidence(
    probabilities: Logits, classes: Labels, confidence: PerSample, logits: Logits
) -> Logits:
    """Probabilities that give each row's class this confidence and keep the order of classes.

    To lower the confidence they are interpolated with flatter ones: proportional to their square
    roots, and below the confidence of these uniform over the classes that are not masked. To raise
    it, those of the other classes shrink by one factor. This follows a change of temperature
    closely, in closed form.
    """
    if torch.compiler.is_exporting():
        return _match_chunk(probabilities, classes, confidence, logits)
    matched = allocate_like(probabilities)
    for rows in iterate_chunks(probabilities):
        part = (probabilities[rows], classes[rows], confidence[rows], logits[rows])
        matched[rows] = _match_chunk(*part)
    return matched


def _match_chunk(
    probabilities: Logits, classes: Labels, confidence: PerSample, logits: Logits
) -> Logits:
    p, place, target = probabilities.double(), classes[:, None], confidence.double()[:, None]
    root = p.sqrt()
    root = root / root.sum(-1, keepdim=True)
    uniform = (logits > MASKED).double() / count_possible(logits)[:, None]
    at_uniform, at_root, at_own = (each.gather(-1, place) for each in (uniform, root, p))
    # How far the confidence has come from uniform to the root, and from there to p.
    soft = ((target - at_uniform) / (at_root - at_uniform).clamp_min(TINY)).clamp(MIN_WEIGHT, 1)
    sharp = ((target - at_root) / (at_own - at_root).clamp_min(TINY)).clamp(0, 1)
    lowered = uniform + soft * (root - uniform) + sharp * (p - root)
    shrinking = ((1 - target) / (1 - at_own).clamp_min(TINY)).clamp_max(1)  # 1 unless it rises
    is_class = mark_class(p, classes)
    return torch.where(is_class, torch.maximum(lowered, target), lowered * shrinking)
