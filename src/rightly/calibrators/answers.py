"""What calibrators answer, and the error of one that cannot yet."""

from typing import NamedTuple

from rightly.tensor_shapes import Labels, Logits, PerSample


class Calibrated(NamedTuple):
    """All outputs of a calibrator, computed together."""

    classes: Labels
    confidence: PerSample
    temperature: PerSample
    probabilities: Logits


class NotFittedError(RuntimeError):
    """A calibrator was asked for confidence before it was fitted."""
