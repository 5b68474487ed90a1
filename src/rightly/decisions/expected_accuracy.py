"""Confidence and expected accuracy at a shift estimate, from a few constants, without torch.

`calibrators` learn the constants and apply the same rule to tensors; streams and servers apply it
here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

TINY = 1e-16  # odds of confidence are bounded by 1e16 to 1


class ExpectedAccuracy(NamedTuple):
    """Accuracy that is expected on unlabelled data, with a range; nan where none is known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ShiftConstants:
    """What a calibrator learned about shifts, as plain numbers; exported files hold them too."""

    weights: Sequence[float]  # of the shift estimate in level and slope of the score; of its square
    limits: Sequence[float]  # the shift estimates that it may be adapted to
    noise: float  # samples' worth by which an estimate is shrunk
    misses: Sequence[float] = ()  # expected less true accuracy of each kind of shift, left out
    kind_estimates: Sequence[float] = ()  # the shift estimate of each of these kinds
    quantile: float | None = None  # Student's t of the range; None with fewer than two kinds

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ShiftConstants":
        """From a table such as `shift_adaptation` in the metadata of an exported file."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: values[name] for name in names if name in values})

    def estimate(self, mean_shift_score: float, samples: int) -> float:
        """The shift estimate of so many samples: clipped to the limits, shrunk by the noise."""
        if not samples:
            return 0.0
        low, high = self.limits
        return min(max(mean_shift_score, low), high) * (samples / (samples + self.noise))

    def adjust(self, confidence: Float[np.ndarray, " n"], estimate: float) -> np.ndarray:
        """Confidence at a shift estimate. Identity at 0."""
        if estimate == 0:
            return confidence
        # Equal confidences stay equal, and none changes places with another by a last digit.
        values, place = np.unique(confidence, return_inverse=True)
        s, (level, slope, curve) = log_odds(values), self.weights
        adjusted = 1 / (1 + np.exp(-(s + (level + slope * s + curve * abs(estimate)) * estimate)))
        ordered: np.ndarray = np.maximum.accumulate(adjusted)[place]
        return ordered

    def expect_accuracy(
        self,
        adapted: Float[np.ndarray, " b"],
        estimate: float,
        counts: Int[np.ndarray, " b"] | None = None,
    ) -> ExpectedAccuracy:
        """Mean of confidences at an estimate, and its expected range; `counts` are of samples."""
        if not len(adapted):
            return ExpectedAccuracy(math.nan, math.nan, math.nan)
        value = float(np.average(adapted, weights=counts))
        if self.quantile is None:
            return ExpectedAccuracy(value, math.nan, math.nan)
        samples = len(adapted) if counts is None else float(np.sum(counts))
        sampling = float(np.average(adapted * (1 - adapted), weights=counts)) / samples
        width = self.quantile * math.sqrt(sampling + self.find_miss(estimate) ** 2)
        return ExpectedAccuracy(value, max(0.0, value - width), min(1.0, value + width))

    def find_miss(self, estimate: float) -> float:
        """How far the expected accuracy of an unknown kind of shift may be off at an estimate.

        The root mean square of what was missed when whole kinds were left out. Farther from the
        calibration data than these lie it grows with the square, as the error of the curve may.
        """
        kinds = len(self.misses)
        missed = sum(miss**2 for miss in self.misses) / kinds * (1 + 1 / kinds)
        reach = math.sqrt(sum(each**2 for each in self.kind_estimates) / kinds)
        return math.sqrt(missed) * max(1.0, abs(estimate) / max(reach, 1e-6)) ** 2


def log_odds(p: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """log(p / (1 - p)), finite also at 0 and 1."""
    odds: np.ndarray = np.log(np.maximum(p, TINY) / np.maximum(1 - p, TINY))
    return odds
