"""Metrics of calibration and of selective prediction.

A metric maps (confidence, correct) to a float, in NumPy.
A few need the whole distribution and map (probabilities, labels) to a float instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, get_args

import numpy as np

from rightly.metrics import binning, ranked
from rightly.metrics.replicates import Inputs, Replicates, Values
from rightly.metrics.validation import check_bins, check_confidence, check_probabilities
from rightly.shapes import AnyArray, Confidence, Correct, Probabilities, TrueClasses

Measure = Callable[..., float]
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


def _validate_confidence(measure: Measure) -> Measure:
    """Checks (confidence, correct) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def check_and_measure(
        confidence: AnyArray, correct: AnyArray, *args: Any, **options: Any
    ) -> float:
        options = {name: check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_confidence(confidence, correct), *map(check_bins, args), **options)
        )

    return check_and_measure


def _validate_probabilities(measure: Measure) -> Measure:
    """Checks (probabilities, labels) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def check_and_measure(
        probabilities: AnyArray, labels: AnyArray, *args: Any, **options: Any
    ) -> float:
        options = {name: check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_probabilities(probabilities, labels), *map(check_bins, args), **options)
        )

    return check_and_measure


def _weighted_gap(summary: binning.Summary) -> float:
    return np.nansum(summary.count * summary.gap()) / summary.count.sum()


@_validate_confidence
def ece(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Mean gap between confidence and accuracy in equal-width bins (Guo et al., 2017)."""
    index = binning.assign_equal_width(confidence, bins)
    return _weighted_gap(binning.summarise(confidence, correct, index, bins))


@_validate_confidence
def ece_debiased(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """ECE less what chance adds to it in bins of this many samples, at least 0.

    max(0, ECE - sum over bins of (n_b / n) s_b B(t / s_b)), where s_b^2 = sum of c (1 - c) / n_b^2,
    t^2 = max(0, sum of (n_b / n) (gap_b^2 - s_b^2)), the debiased squared error of Kumar et al.
    (2019), and B(z) = 2 phi(z) - 2 z Phi(-z) is the bias of |z + noise|. For calibrated samples
    t is near 0 and the noise floor is taken off; far from calibration nothing is. Its mean is
    nearer to the truth than ECE's; a single value is spread more.
    """
    index = binning.assign_equal_width(confidence, bins)
    excess, variance, count = (
        np.bincount(index, weights=weights, minlength=bins)[None]
        for weights in (confidence - correct, confidence * (1 - confidence), np.ones(len(index)))
    )
    by_chance = binning.expected_excess_by_chance(excess, variance, count)[0]
    return max(0.0, abs(excess).sum() - by_chance) / len(correct)


@_validate_confidence
def brier(confidence: Confidence, correct: Correct) -> float:
    """Mean squared distance between confidence and correctness (Brier, 1950)."""
    return ((confidence - correct) ** 2).mean()


@_validate_confidence
def ace(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Mean gap in bins of equal count, of the predicted class only (after Nixon et al., 2019)."""
    index = binning.assign_quantile(confidence, bins)
    return _weighted_gap(binning.summarise(confidence, correct, index, bins))


@_validate_confidence
def mce(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> float:
    """Largest gap of any non-empty equal-width bin, however few it holds (Naeini et al., 2015)."""
    index = binning.assign_equal_width(confidence, bins)
    return np.nanmax(binning.summarise(confidence, correct, index, bins).gap())


@_validate_confidence
def ks(confidence: Confidence, correct: Correct) -> float:
    """Largest gap between cumulative confidence and cumulative accuracy (Gupta et al., 2021)."""
    return ranked.ks(ranked.rank(confidence, correct))


@_validate_confidence
def ks_released(confidence: Confidence, correct: Correct) -> float:
    """The "KS" of the paper's released code, which sorts by correctness, not by confidence.

    Its arguments are swapped, which makes it max(A, B - A) with A the confidence lost on wrong
    samples and B that missing on right ones: a calibrated predictor scores its Brier score, not
    0. Here to compare with the paper's tables, not to judge a calibrator.
    """
    on_wrong = confidence[~correct].sum() / len(correct)
    missing_on_right = (1 - confidence[correct]).sum() / len(correct)
    return max(on_wrong, missing_on_right - on_wrong)


@_validate_confidence
def auroc(confidence: Confidence, correct: Correct) -> float:
    """Chance that a right sample outranks a wrong one (Hendrycks & Gimpel, 2017); nan if none."""
    return ranked.auroc(ranked.rank(confidence, correct))


@_validate_probabilities
def nll(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Mean negative log-probability of the true class."""
    true_probability = probabilities[np.arange(len(labels)), labels]
    # A probability that rounding turned to 0 must not make the mean infinite; scikit-learn's
    # log_loss has the same floor.
    return -np.log(np.clip(true_probability, np.finfo(np.float64).eps, 1)).mean()


@_validate_probabilities
def classwise_ece(
    probabilities: Probabilities, labels: TrueClasses, bins: int = binning.BINS
) -> float:
    """Mean over classes of each one's ECE, probabilities of 0 left out (Nixon et al., 2019)."""
    n, c = probabilities.shape
    total = 0.0
    for k in range(c):  # one class at a time: 50,000 x 1,000 at once would need gigabytes
        rows = probabilities[:, k] > 0
        excess = probabilities[rows, k] - (labels[rows] == k)
        index = binning.assign_equal_width(probabilities[rows, k], bins)
        total += abs(np.bincount(index, weights=excess)).sum()
    return total / (n * c)


@_validate_confidence
def smooth_ece(confidence: Confidence, correct: Correct) -> float:
    """ECE smoothed at the width that equals its own value (Blasiok & Nakkiran, 2023).

    The fixed point of their definition, to 1e-4. Their package relplot halves the range of widths
    ten times and sums over a mesh of 200 points, which leaves it up to 5e-4 away: of 500
    calibrated samples it gave 0.0378 where this, and the kernel summed without a grid, gave 0.0382.
    """
    excess = np.bincount(
        binning.assign_cells(confidence),
        weights=confidence - correct,
        minlength=binning.CELLS,
    )
    return binning.fixed_point_bandwidth(excess[None] / len(correct))[0]


@_validate_confidence
def aurc(confidence: Confidence, correct: Correct) -> float:
    """Mean over k of the error rate among the k most confident (Geifman et al., 2019)."""
    _, group, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    # Each sample of a tie gets the tie's mean error: the average over every order of the tie.
    error = np.repeat(np.bincount(group, weights=~correct) / count, count)
    return (error.cumsum() / np.arange(1, len(error) + 1)).mean()


@_validate_confidence
def confidence_gap(confidence: Confidence, correct: Correct) -> float:
    """Mean confidence when wrong minus when right, the paper's E^diff; nan if either is never."""
    if correct.all() or not correct.any():
        return np.nan
    return confidence[~correct].mean() - confidence[correct].mean()


@_validate_probabilities
def narrowly_wrong(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Share of all samples that are wrong with p_true / p_predicted > 0.5, as in the paper."""
    rows = np.arange(len(labels))
    predicted = probabilities.argmax(-1)
    near = probabilities[rows, labels] > 0.5 * probabilities[rows, predicted]
    return (near & (predicted != labels)).mean()
