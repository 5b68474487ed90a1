"""Adaptation of confidence to shifted data: by an unlabelled batch, or by a few labels.

A sample's score s is the log-odds of its confidence. Its shift score r is s less a reference of the
predicted class; the shift estimate of a batch is the mean shift score, clipped to what was learned
from and shrunk by how much of it may be chance. At the shift estimate C the score becomes

    s + (w_0 + w_1 s + w_2 |C|) C

which is s itself at C = 0 and increases in s for every C that clipping allows, so that adapting
changes neither the predicted class nor the ranking within a batch. The square is there because
scores that fall twice as far lose more than twice as much accuracy. With labels of new samples the
score becomes intercept + slope s instead. Both are learned in `shift_fitting`.
"""

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from rightly.calibrators.answers import CalibratedOutputs
from rightly.calibrators.checks import bound_confidence, settle_probabilities
from rightly.calibrators.drift_reference import DriftReference
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.execution import allocate_like, iterate_chunks
from rightly.calibrators.solvers.log_odds import MAX_LOG_ODDS
from rightly.calibrators.solvers.temperature import mark_class, scaled_softmax
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.checks import check_fraction
from rightly.decisions.expected_accuracy import ExpectedAccuracy, ShiftConstants
from rightly.predictions import Predictions
from rightly.predictions.masking import MASKED, count_possible, settle_confidence
from rightly.tensor_shapes import Labels, Logits, PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

CONSTANTS = ("weights", "limits", "noise", "misses", "kind_estimates")
MIN_WEIGHT = 1e-6  # of the sharper distribution: below confidence 1 / c, classes keep their order
TINY = 1e-37  # float32, which the constants of a graph are, holds it


class ShiftError(ValueError):
    """A calibrator learned too little about shifts for what it was asked."""


class ShiftEstimate(NamedTuple):
    """The shift estimate of a batch, and the mean shift score before clipping and shrinking."""

    value: float
    mean_score: float
    samples: int
    is_clipped: bool


class ShiftAdaptation(nn.Module):
    """What a calibrator learned about shifts, and its present shift estimate, 0 for none."""

    stores = {
        "reference": Stored("c"),
        "weights": Stored("3", low=0),
        "limits": Stored("2"),
        "noise": Stored(low=0),
        "misses": Stored("k"),
        "kind_estimates": Stored("k"),
        "estimate": Stored(),
    }

    reference: Tensor  # (c,): the score from which shift scores of a predicted class are counted
    weights: Tensor  # (3,): of the shift estimate in level and slope over the score; of its square
    limits: Tensor  # (2,): the shift estimates that it may be adapted to
    noise: Tensor  # samples' worth by which the estimate of a batch is shrunk
    misses: Tensor  # (k,): expected less true accuracy of each kind of shift, when left out
    kind_estimates: Tensor  # (k,): the shift estimate of each of these kinds
    estimate: Tensor  # the shift estimate that it is adapted to

    def __init__(self) -> None:
        super().__init__()
        self.drift = DriftReference()

    @classmethod
    def of(cls, **values: Tensor) -> "ShiftAdaptation":
        made = cls()
        for name, value in (*values.items(), ("estimate", torch.zeros(()))):
            made.register_buffer(name, value.detach().double().clone())
        return made

    @property
    def is_adapted(self) -> bool:
        return bool(self.estimate != 0)

    def shift_scores(self, confidence: PerSample, classes: Labels) -> PerSample:
        """What each sample adds to the shift estimate of its batch, from unadapted confidence."""
        return score(confidence) - self.reference.index_select(0, classes)

    def measure(self, confidence: PerSample, classes: Labels) -> ShiftEstimate:
        """The shift estimate of a batch, from its unadapted confidences."""
        scores = self.shift_scores(confidence, classes)
        return self.shrink(float(scores.mean()), len(scores))

    def shrink(self, mean_score: float, count: int) -> ShiftEstimate:
        """The shift estimate of so many samples with this mean shift score."""
        constants = self.constants()
        value = constants.estimate(mean_score, count)
        # A few samples lie far out by chance, and are believed little: that is no reason to warn.
        low, high = constants.limits
        is_beyond = not low <= mean_score * count / (count + constants.noise) <= high
        return ShiftEstimate(value, mean_score, count, is_beyond)

    def constants(self, confidence_level: float | None = None) -> ShiftConstants:
        """What adapting needs, as plain numbers; with a level, also the quantile of its range."""
        values = {name: getattr(self, name).tolist() for name in CONSTANTS}
        if confidence_level is not None and len(self.misses) > 1:
            from scipy.stats import t

            quantile = t.ppf((1 + confidence_level) / 2, len(self.misses) - 1)
            values["quantile"] = float(quantile)
        return ShiftConstants.of(values)

    def describe_drift(self) -> dict[str, Any]:
        """What samples without drift look like, as plain values; exported files hold them too."""
        arrays = self.drift.arrays() | {"reference": self.reference.cpu().numpy()}
        return {
            name: (array.astype(float).round(4) if array.dtype.kind == "f" else array).tolist()
            for name, array in arrays.items()
        }

    def adjust(self, confidence: PerSample, estimate: Tensor | None = None) -> PerSample:
        """Confidence at a shift estimate, by default its own. Identity where the estimate is 0."""
        at, confidence = self.estimate if estimate is None else estimate, confidence.double()
        adjusted = keep_order(confidence, lambda values: self._adjust(values, at))
        return torch.where(at == 0, confidence, adjusted)

    def _adjust(self, confidence: PerSample, at: Tensor) -> PerSample:
        # Not bounded as in shift scores, where ties would change the ranking.
        s = log_odds(confidence)
        level, slope, curve = self.weights[0], self.weights[1], self.weights[2]
        return (s + (level + slope * s + curve * at.abs()) * at).sigmoid()

    def expected_accuracy(
        self, confidence: PerSample, estimate: ShiftEstimate, confidence_level: float
    ) -> ExpectedAccuracy:
        """Mean adapted confidence, and how far sampling and unknown kinds of shift may move it."""
        if len(self.misses) < 2:
            raise ShiftError(
                "there is no expected range, because the calibration data show one kind of shift "
                "and two are needed to leave one out: collect more views or shifts"
            )
        adapted = self.adjust(confidence, self.estimate.new_tensor(estimate.value))
        constants = self.constants(confidence_level)
        return constants.expect_accuracy(adapted.cpu().numpy(), estimate.value)


class InterceptSlope(nn.Module):
    """A correction learned from a few labels: the score becomes intercept + slope * s."""

    stores = {"intercept": Stored(), "slope": Stored(low=POSITIVE)}

    intercept: Tensor
    slope: Tensor

    @classmethod
    def of(cls, intercept: float, slope: float) -> "InterceptSlope":
        made = cls()
        for name, value in (("intercept", intercept), ("slope", slope)):
            made.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        return made

    @property
    def estimate(self) -> Tensor:
        """Return 1 in place of a shift estimate: the correction always applies."""
        return torch.ones_like(self.slope)

    def adjust(self, confidence: PerSample, estimate: Tensor | None = None) -> PerSample:
        """The corrected confidence, whatever the shift estimate."""
        return keep_order(confidence.double(), self._adjust)

    def _adjust(self, confidence: PerSample) -> PerSample:
        # Not bounded as in the fit, where ties would change the ranking.
        s = torch.logit(confidence, eps=torch.finfo(torch.float64).eps / 2)
        return (self.intercept + self.slope * s).sigmoid()


def keep_order(confidence: PerSample, adjust: Callable[[PerSample], PerSample]) -> PerSample:
    """Apply an increasing function so that ties stay ties and no order changes by rounding."""
    if torch.compiler.is_exporting() or confidence.requires_grad:
        return adjust(confidence)
    # The same function rounds otherwise at the end of a processor's vectors.
    values, place = confidence.unique(return_inverse=True)
    return adjust(values).cummax(0).values[place]


def score(confidence: PerSample) -> PerSample:
    """Log-odds of a confidence, bounded so that no sample outweighs a batch."""
    return log_odds(confidence).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)


def log_odds(p: PerSample) -> PerSample:
    """log(p / (1 - p)), finite also at 0 and 1: at most 36.8, odds of 1e16 to 1."""
    p = p.double()
    # An exporter's constants are float32, in which 1 - 1e-16 would be 1.
    return (p.clamp_min(1e-16) / (1 - p).clamp_min(1e-16)).log()


def require_shift(calibrator: "Calibrator") -> ShiftAdaptation:
    """What the calibrator learned about shifts, or the error that says how to get it."""
    if calibrator.shift is None:
        raise ShiftError(f"{calibrator.title} cannot be adapted: {_find_reason(calibrator)}")
    return calibrator.shift


def _find_reason(calibrator: "Calibrator") -> str:
    if calibrator.correction is not None:
        return "it was adapted with labels; adapt the one before, or fit on the new samples"
    if calibrator.no_shift is not None:
        return calibrator.no_shift
    return "call learn_shift(predictions, labels) with the calibration data first"


def adapt_to_batch(calibrator: "Calibrator", unlabelled: Predictions) -> "Calibrator":
    """Return a copy at the shift estimate of this batch, whatever it was adapted to before."""
    if calibrator.has_own_adaptation and calibrator.correction is None:
        calibrator.check(unlabelled)
        _check_rows(unlabelled)
        own = copy.deepcopy(calibrator)
        with torch.no_grad():
            own.adapt_to(unlabelled)
        own.shift, own.no_shift = None, "it is adapted to a batch in its own way"
        return own
    shift, estimate, _ = _measure_batch(calibrator, unlabelled)
    if estimate.is_clipped:
        low, high = (float(x) for x in shift.limits)
        warnings.warn(
            f"the shift estimate of this batch, {estimate.mean_score:.2f}, lies beyond those that "
            f"{calibrator.title} learned from, {low:.2f} to {high:.2f}, and is clipped: its "
            "confidence may still be off; label some of it",
            UserWarning,
            stacklevel=3,
        )
    adapted = copy.deepcopy(calibrator)
    assert adapted.shift is not None
    adapted.shift.register_buffer("estimate", shift.estimate.new_tensor(estimate.value))
    return adapted


def expected_accuracy(
    calibrator: "Calibrator", unlabelled: Predictions, confidence_level: float
) -> ExpectedAccuracy:
    """Accuracy that is expected on this batch, with an interval at this level."""
    check_fraction("confidence_level", confidence_level)
    shift, estimate, confidence = _measure_batch(calibrator, unlabelled)
    return shift.expected_accuracy(confidence, estimate, confidence_level)


def score_shift(calibrator: "Calibrator", predictions: Predictions) -> tuple[PerSample, PerSample]:
    """Shift score and unadapted confidence of each sample."""
    shift, _, confidence = _measure_batch(calibrator, predictions)
    with torch.no_grad():
        return shift.shift_scores(confidence, calibrator.compute_classes(predictions)), confidence


def _measure_batch(
    calibrator: "Calibrator", unlabelled: Predictions
) -> tuple[ShiftAdaptation, ShiftEstimate, PerSample]:
    """What was learned about shifts, the estimate of a batch, and its unadapted confidences."""
    calibrator.check(unlabelled)
    shift = require_shift(calibrator)
    _check_rows(unlabelled)
    with torch.no_grad():
        confidence = bound_confidence(calibrator.compute_confidence(unlabelled), unlabelled)
        classes = calibrator.compute_classes(unlabelled)
        return shift, shift.measure(confidence, classes), confidence


def _check_rows(unlabelled: Predictions) -> None:
    if not len(unlabelled):
        raise ValueError("predictions must hold at least one row to adapt to, got none")


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
    adaptation: ShiftAdaptation | InterceptSlope | None,
    at: Tensor | None = None,
) -> FinalOutputs:
    """The outputs adapted to the shift estimate `at`, by default to the adaptation's own."""
    confidence = unadapted = bound_confidence(outputs.confidence, predictions)
    probabilities = compute_all_probabilities(outputs, predictions)
    if adaptation is not None:
        estimate = adaptation.estimate if at is None else at
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
