"""Metrics of calibration and of selective prediction.

A metric maps (confidence, correct) to a float, in NumPy.
A few need the whole distribution and map (probabilities, labels) to a float instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rightly.metrics import binning, ranked, sums
from rightly.metrics.accumulator import Accumulator
from rightly.metrics.checked_measures import (
    Measure,
    check_options,
    validate_confidence,
    validate_probabilities,
)
from rightly.metrics.replicates import Inputs, Replicates, Values
from rightly.metrics.sums import Sums
from rightly.shapes import Confidence, Correct, Probabilities, TrueClasses

Resampled = Callable[[Replicates], Values]
Ranked = Callable[[ranked.RankedOutcomes], float]
Unit = Literal["%", "nats"]


@dataclass(frozen=True)
class Metric:
    """All that tables, intervals, figures and reports need to know of one metric."""

    name: str
    measure: Measure  # of (confidence, correct) or (probabilities, labels), as `inputs` says
    resampled: Resampled | None = None  # of many resamples at once; without it, one by one
    inputs: Inputs = "confidence"
    lower_is_better: bool | None = True  # None: a diagnostic, neither is better
    range: tuple[float, float] = (-np.inf, np.inf)  # intervals are clipped to it
    unit: Unit = "%"  # "%": a share, shown times 100
    title: str = ""  # the literature's name; without one, `name`
    meaning: str = ""  # in a reader's words
    ranked: Ranked | None = None  # of samples sorted once for several metrics, the same value
    sums: Sums | None = None  # of batches, in constant memory; without it, samples are kept

    def __post_init__(self) -> None:
        for field, options in (("inputs", get_args(Inputs)), ("unit", get_args(Unit))):
            if getattr(self, field) not in options:
                expected = " or ".join(map(repr, options))
                raise ValueError(f"{field} must be {expected}, got {getattr(self, field)!r}")
        if not self.range[0] < self.range[1]:
            raise ValueError(
                f"range must be (least, largest), got {self.range}: leave it out if there is none"
            )
        object.__setattr__(self, "title", self.title or self.name)

    def accumulator(self, **options: Any) -> Accumulator:
        """Sums up batches: `update`, `compute`, `reset`, `merge`; options such as bins=15."""
        return Accumulator(self, check_options(self.measure, options))


@validate_confidence
def ece(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Mean gap between confidence and accuracy in equal-width bins (Guo et al., 2017)."""
    return sums.ece(*sums.by_bin(confidence, correct, bins))


@validate_confidence
def ece_l2(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Root of the mean squared gap in equal-width bins (RMS calibration error, Kumar et al., 2019).

    What torchmetrics calls norm="l2". It weighs large gaps more than ECE does, and is never below.
    """
    return sums.ece_l2(*sums.by_bin(confidence, correct, bins))


@validate_confidence
def ece_debiased(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """ECE less what chance adds to it in bins of this many samples, at least 0.

    max(0, ECE - sum over bins of (n_b / n) s_b B(t / s_b)), where s_b^2 = sum of c (1 - c) / n_b^2,
    t^2 = max(0, sum of (n_b / n) (gap_b^2 - s_b^2)), the debiased squared error of Kumar et al.
    (2019), and B(z) = 2 phi(z) - 2 z Phi(-z) is the bias of |z + noise|. For calibrated samples
    t is near 0 and the noise floor is taken off; far from calibration nothing is. Its mean is
    nearer to the truth than ECE's; a single value is spread more.
    """
    return sums.ece_debiased(*sums.by_bin_with_variance(confidence, correct, bins))


@validate_confidence
def brier(confidence: Confidence, correct: Correct) -> float:
    """Mean squared distance between confidence and correctness (Brier, 1950)."""
    return sums.mean(*sums.squares(confidence, correct))


@validate_confidence
def ace(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Mean gap in bins of equal count, of the predicted class only (after Nixon et al., 2019)."""
    index = binning.assign_quantile(confidence, bins)
    return abs(np.bincount(index, weights=confidence - correct)).sum() / len(correct)


@validate_confidence
def mce(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Largest gap of any non-empty equal-width bin, however few it holds (Naeini et al., 2015)."""
    return sums.mce(*sums.by_bin(confidence, correct, bins))


@validate_confidence
def ks(confidence: Confidence, correct: Correct) -> float:
    """Largest gap between cumulative confidence and cumulative accuracy (Gupta et al., 2021)."""
    return ranked.ks(ranked.rank(confidence, correct))


@validate_confidence
def ks_released(confidence: Confidence, correct: Correct) -> float:
    """The "KS" of the paper's released code, which sorts by correctness, not by confidence.

    Its arguments are swapped, which makes it max(A, B - A) with A the confidence lost on wrong
    samples and B that missing on right ones: a calibrated predictor scores its Brier score, not
    0. Here to compare with the paper's tables, not to judge a calibrator.
    """
    return sums.ks_released(*sums.by_outcome(confidence, correct))


@validate_confidence
def auroc(confidence: Confidence, correct: Correct) -> float:
    """Chance that a right sample outranks a wrong one (Hendrycks & Gimpel, 2017); nan if none."""
    return ranked.auroc(ranked.rank(confidence, correct))


@validate_probabilities
def nll(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Mean negative log-probability of the true class."""
    return sums.mean(*sums.surprise(probabilities, labels))


@validate_probabilities
def multiclass_brier(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Mean over samples of the squared distances of all classes, from 0 to 2 (Brier, 1950).

    With two classes twice the Brier score of P(y = 1). `brier_decomposition` splits it.
    """
    return sums.mean(*sums.class_squares(probabilities, labels))


@validate_probabilities
def classwise_ece(
    probabilities: Probabilities, labels: TrueClasses, bins: int = binning.BINS
) -> float:
    """Mean over classes of each one's ECE, probabilities of 0 left out (Nixon et al., 2019)."""
    return sums.classwise_ece(*sums.by_class_and_bin(probabilities, labels, bins))


@validate_confidence
def smooth_ece(confidence: Confidence, correct: Correct) -> float:
    """ECE smoothed at the width that equals its own value (Blasiok & Nakkiran, 2023).

    The fixed point of their definition, to 1e-4. Their package relplot halves the range of widths
    ten times and sums over a mesh of 200 points, which leaves it up to 5e-4 away: of 500
    calibrated samples it gave 0.0378 where this, and the kernel summed without a grid, gave 0.0382.
    """
    return sums.smooth_ece(*sums.by_cell(confidence, correct))


@validate_confidence
def confidence_gap(confidence: Confidence, correct: Correct) -> float:
    """Mean confidence when wrong minus when right, the paper's E^diff; nan if either is never."""
    return sums.confidence_gap(*sums.by_outcome(confidence, correct))


@validate_probabilities
def narrowly_wrong(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Share of all samples that are wrong with p_true / p_predicted > 0.5, as in the paper."""
    return sums.mean(*sums.near_misses(probabilities, labels))
