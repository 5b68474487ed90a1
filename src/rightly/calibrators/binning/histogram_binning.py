"""The accuracy of a bin of confidence as the confidence of all in it (Zadrozny & Elkan, 2001)."""

from typing import final

import numpy as np

from rightly.calibrators.binning.step_confidence import (
    BINS,
    StepConfidence,
    equal_mass_edges,
)
from rightly.checks import check_count

KINDS = ("mass", "width")


@final
class HistogramBinning(StepConfidence):
    """Bins of equal mass or width; one without calibration samples keeps the middle of its range.

    For the predicted class alone (Gupta & Ramdas, 2021, call it top-label), so the class stays.
    """

    def __init__(self, bins: int = BINS, equal: str = "mass") -> None:
        super().__init__()
        if equal not in KINDS:
            raise ValueError(f"equal must be 'mass' or 'width', got {equal!r}")
        self.bins, self.equal = check_count("bins", bins, 1, 10**6), equal

    def find_steps(
        self, confidence: np.ndarray, correct: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.equal == "mass":
            edges = equal_mass_edges(confidence, self.bins)
        else:
            edges = np.arange(1, self.bins) / self.bins
        place = np.searchsorted(edges, confidence)
        count = np.bincount(place, minlength=len(edges) + 1)
        right = np.bincount(place, correct, len(edges) + 1)
        ends = np.concatenate([[0.0], edges, [1.0]])
        middle = (ends[:-1] + ends[1:]) / 2
        return edges, np.where(count, right / np.maximum(count, 1), middle)
