"""The expected range of an accuracy: sampling, and how far unknown kinds of shift may miss."""

import math
from collections.abc import Sequence


def find_miss(context: float, misses: Sequence[float], kind_contexts: Sequence[float]) -> float:
    """How far the expected accuracy of an unknown kind of shift may be off at a context.

    The root mean square of what was missed when whole kinds were left out. Farther from the
    calibration data than these lie it grows with the square, as what the curve may be off by does.
    """
    kinds = len(misses)
    missed = sum(miss**2 for miss in misses) / kinds * (1 + 1 / kinds)
    reach = max(math.sqrt(sum(c**2 for c in kind_contexts) / kinds), 1e-6)
    return math.sqrt(missed) * max(1.0, abs(context) / reach) ** 2


def find_range(value: float, sampling: float, miss: float, quantile: float) -> tuple[float, float]:
    """From variance of sampling and miss, by a quantile of Student's t, within 0 and 1."""
    width = quantile * math.sqrt(sampling + miss**2)
    return max(0.0, value - width), min(1.0, value + width)
