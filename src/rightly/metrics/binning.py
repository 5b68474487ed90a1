"""Groups of samples of similar confidence, for the metrics and for reliability diagrams."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rightly.shapes import Confidence, Correct

BINS = 25  # the default of the binned metrics, as in the paper's tables

Values = Float[np.ndarray, " n"]
Index = Int[np.ndarray, " n"]
Edges = Float[np.ndarray, " edges"]
PerBin = Float[np.ndarray, " bins"]


@dataclass(frozen=True, eq=False)  # arrays have no single truth to compare by
class Summary:
    """What each bin holds; the means of an empty bin are nan."""

    count: Int[np.ndarray, " bins"]
    confidence: PerBin
    accuracy: PerBin

    def gap(self) -> PerBin:
        """Distance between mean confidence and accuracy in each bin."""
        return abs(self.confidence - self.accuracy)


def equal_width_edges(bins: int) -> Edges:
    """The bins + 1 edges m / bins."""
    # A true quotient is rounded once, so that 7 / 25 is the very number a user writes as 0.28;
    # linspace multiplies by a rounded step and can miss it.
    return np.arange(bins + 1) / bins


def quantile_edges(values: Values, bins: int) -> Edges:
    """The bins + 1 edges that split the values into equal counts, interpolated linearly."""
    return np.quantile(values, equal_width_edges(bins))


def assign_equal_width(values: Values, bins: int) -> Index:
    """The bin of each value: m where m / bins < value <= (m + 1) / bins, and 0 for value 0."""
    # The outer edges are left out of the search: no value can fall off either end.
    return np.searchsorted(equal_width_edges(bins)[1:-1], values, side="left")


def assign_quantile(values: Values, bins: int) -> Index:
    """The bin of each value when bins hold equal counts; equal values share a bin."""
    # Closed on the left, so that values saturated at 1, however many, have the last bin to
    # themselves; closed on the right, they would be mixed with the values just below.
    return np.searchsorted(quantile_edges(values, bins)[1:-1], values, side="right")


def summarise(confidence: Confidence, correct: Correct, index: Index, bins: int) -> Summary:
    """Count, mean confidence and accuracy of each bin."""
    count = np.bincount(index, minlength=bins)
    divisor = np.where(count > 0, count, np.nan)  # 0 / nan is nan, without a warning
    return Summary(
        count=count,
        confidence=np.bincount(index, weights=confidence, minlength=bins) / divisor,
        accuracy=np.bincount(index, weights=correct, minlength=bins) / divisor,
    )
