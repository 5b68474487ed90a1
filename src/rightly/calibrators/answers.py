"""What calibrators return, and the error of one that is not fitted."""

from typing import NamedTuple

from rightly.tensor_shapes import Labels, Logits, PerSample


class CalibratedOutputs(NamedTuple):
    """Outputs of a calibrator, computed together.

    A method gives the temperature that it divides logits by, or probabilities of its own, or
    neither: then its probabilities are softmax(z / T) at the T that gives its confidence.
    """

    classes: Labels
    confidence: PerSample
    temperature: PerSample | None = None
    probabilities: Logits | None = None


class NotFittedError(RuntimeError):
    """A calibrator was asked for confidence before it was fitted."""
