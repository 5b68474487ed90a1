"""The context of a batch: how far its scores lie from where those of the calibration data lie.

A sample's score s is the log-odds of its confidence. Its residual r is s less a reference of the
class that is predicted; the context of a batch is the mean residual, clipped to what was learned
from and shrunk by how much of it may be chance. At context C the score becomes

    s + (w_0 + w_1 s + w_2 |C|) C

which is s itself at C = 0 and increases in s for every C that clipping allows, so that adapting
changes neither the predicted class nor the ranking within a batch. The square is there because
scores that fall twice as far lose more than twice as much accuracy.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from rightly.calibrators.adaptation.drift_reference import DriftReference
from rightly.calibrators.solvers.log_odds import MAX_LOG_ODDS
from rightly.calibrators.stored_tensors import Stored
from rightly.decisions.expected_accuracy import ExpectedAccuracy, ShiftConstants
from rightly.tensor_shapes import Labels, PerSample

CONSTANTS = ("weights", "limits", "noise", "misses", "kind_contexts")


class NoContextError(ValueError):
    """A calibrator learned too little about contexts for what it was asked."""


class BatchContext(NamedTuple):
    """The context of a batch, and what it was before it was clipped and shrunk."""

    value: float
    mean_residual: float
    samples: int
    is_clipped: bool


class Context(nn.Module):
    """What a calibrator learned about contexts, and the one that it is adapted to: 0 for none."""

    stores = {
        "reference": Stored("c"),
        "weights": Stored("3", low=0),
        "limits": Stored("2"),
        "noise": Stored(low=0),
        "misses": Stored("k"),
        "kind_contexts": Stored("k"),
        "value": Stored(),
    }

    reference: Tensor  # (c,): the score from which residuals of a predicted class are counted
    weights: Tensor  # (3,): of the context in level and slope over the score; of its square
    limits: Tensor  # (2,): the contexts that it may be adapted to
    noise: Tensor  # samples' worth by which the context of a batch is shrunk
    misses: Tensor  # (k,): expected less true accuracy of each kind of shift, when left out
    kind_contexts: Tensor  # (k,): the context of each of these kinds
    value: Tensor  # the context that it is adapted to

    def __init__(self) -> None:
        super().__init__()
        self.drift = DriftReference()

    @classmethod
    def of(cls, **values: Tensor) -> "Context":
        context = cls()
        for name, value in (*values.items(), ("value", torch.zeros(()))):
            context.register_buffer(name, value.detach().double().clone())
        return context

    @property
    def is_adapted(self) -> bool:
        return bool(self.value != 0)

    def residuals(self, confidence: PerSample, classes: Labels) -> PerSample:
        """What each sample adds to the context of its batch."""
        return score(confidence) - self.reference.index_select(0, classes)

    def measure(self, confidence: PerSample, classes: Labels) -> BatchContext:
        """The context of a batch, by its unadapted confidences."""
        residuals = self.residuals(confidence, classes)
        return self.shrink(float(residuals.mean()), len(residuals))

    def shrink(self, mean_residual: float, count: int) -> BatchContext:
        """The context of so many samples with this mean residual."""
        constants = self.constants()
        value = constants.estimate(mean_residual, count)
        # A few samples lie far out by chance, and are believed little: that is no reason to warn.
        low, high = constants.limits
        is_beyond = not low <= mean_residual * count / (count + constants.noise) <= high
        return BatchContext(value, mean_residual, count, is_beyond)

    def constants(self, level: float | None = None) -> ShiftConstants:
        """What adapting needs, as plain numbers; with the level of an expected range, its too."""
        values = {name: getattr(self, name).tolist() for name in CONSTANTS}
        if level is not None and len(self.misses) > 1:
            from scipy.stats import t

            values["quantile"] = float(t.ppf((1 + level) / 2, len(self.misses) - 1))
        return ShiftConstants.of(values)

    def adjust(self, confidence: PerSample, context: Tensor | None = None) -> PerSample:
        """Confidence at a context, by default its own; at 0 what came, bit for bit."""
        at, confidence = self.value if context is None else context, confidence.double()
        if torch.compiler.is_exporting() or confidence.requires_grad:
            return torch.where(at == 0, confidence, self._adjust(confidence, at))
        # Equal confidences stay equal, and none changes places with another by a last digit: the
        # same function rounds otherwise at the end of a processor's vectors.
        values, place = confidence.unique(return_inverse=True)
        adjusted = self._adjust(values, at).cummax(0).values[place]
        return torch.where(at == 0, confidence, adjusted)

    def _adjust(self, confidence: PerSample, at: Tensor) -> PerSample:
        # Not bounded as in residuals, where ties would change the ranking.
        s = log_odds(confidence)
        level, slope, curve = self.weights[0], self.weights[1], self.weights[2]
        return (s + (level + slope * s + curve * at.abs()) * at).sigmoid()

    def expected_accuracy(
        self, confidence: PerSample, batch: BatchContext, level: float
    ) -> ExpectedAccuracy:
        """Mean adapted confidence, and how far sampling and unknown kinds of shift may move it."""
        if len(self.misses) < 2:
            raise NoContextError(
                "there is no expected range, because the calibration data show one kind of shift "
                "and two are needed to leave one out: collect more views or shifts"
            )
        adapted = self.adjust(confidence, self.value.new_tensor(batch.value))
        return self.constants(level).expect_accuracy(adapted.cpu().numpy(), batch.value)


def score(confidence: PerSample) -> PerSample:
    """Log-odds of a confidence, bounded so that no sample outweighs a batch."""
    return log_odds(confidence).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)


def log_odds(p: PerSample) -> PerSample:
    """log(p / (1 - p)), finite also at 0 and 1: at most 36.8, odds of 1e16 to 1."""
    p = p.double()
    # An exporter's constants are float32, in which 1 - 1e-16 would be 1.
    return (p.clamp_min(1e-16) / (1 - p).clamp_min(1e-16)).log()
