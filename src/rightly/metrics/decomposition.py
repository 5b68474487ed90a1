"""What the multiclass Brier score is made of."""

from dataclasses import dataclass

import numpy as np

from rightly.checks import check_count, check_probabilities
from rightly.metrics import binning
from rightly.shapes import AnyArray


@dataclass(frozen=True)
class BrierDecomposition:
    """`brier` = `reliability` - `resolution` + `uncertainty` + `within_bins`, to rounding.

    `within_bins` is what binning hides: 0 where all probabilities of a bin are equal.
    """

    brier: float
    reliability: float  # the calibration error: 0 is best
    resolution: float  # how far the bins' frequencies lie from the overall ones: large is best
    uncertainty: float  # of the labels alone: the score of always giving their frequencies
    within_bins: float

    @property
    def refinement(self) -> float:
        """What is left of the score where calibration is perfect: uncertainty - resolution."""
        return self.uncertainty - self.resolution + self.within_bins


def brier_decomposition(
    probabilities: AnyArray, labels: AnyArray, bins: int = binning.BINS
) -> BrierDecomposition:
    """The multiclass Brier score in Murphy's (1973) terms, each class in equal-width bins.

    All terms are sums over classes. Within bins probability and truth vary by themselves and
    together (Stephenson et al., 2008): their variance less twice their covariance.
    """
    p, y = check_probabilities(probabilities, labels)
    bins = check_count("bins", bins)
    n, c = p.shape
    terms = np.zeros(4)
    for k in range(c):  # one class at a time, as in classwise_ece
        own, truth = p[:, k], 1.0 * (y == k)
        index = binning.assign_equal_width(own, bins)
        count = np.bincount(index, minlength=bins)
        filled = np.maximum(count, 1)
        mean, frequency = (np.bincount(index, x, bins) / filled for x in (own, truth))
        base = truth.mean()
        apart, hit = own - mean[index], truth - frequency[index]
        terms += (
            count @ (mean - frequency) ** 2 / n,
            count @ (frequency - base) ** 2 / n,
            base * (1 - base),
            (apart**2 - 2 * apart * hit).mean(),
        )
    reliability, resolution, uncertainty, within = terms.tolist()
    brier = reliability - resolution + uncertainty + within
    return BrierDecomposition(brier, reliability, resolution, uncertainty, within)
