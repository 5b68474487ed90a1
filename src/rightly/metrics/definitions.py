"""How honest a confidence is. A metric maps (confidence, correct) to a float, in NumPy.

A few need the whole distribution and map (probabilities, labels) to a float instead.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, NamedTuple

import numpy as np

from rightly.metrics import binning
from rightly.metrics import kernel_smoothing as smoothing
from rightly.metrics.validation import check_bins, check_confidence, check_probabilities
from rightly.shapes import AnyArray, Confidence, Correct, Probabilities, TrueClasses

Measure = Callable[..., float]


class Metric(NamedTuple):
    """A measure, its direction (None: a diagnostic, neither is better) and what it looks at."""

    measure: Measure
    lower_is_better: bool | None = True
    takes: Literal["confidence", "probabilities"] = "confidence"


def _of_confidence(measure: Measure) -> Measure:
    """Check (confidence, correct) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def checked(confidence: AnyArray, correct: AnyArray, *args: Any, **options: Any) -> float:
        options = {name: check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_confidence(confidence, correct), *map(check_bins, args), **options)
        )

    return checked


def _of_probabilities(measure: Measure) -> Measure:
    """Check (probabilities, labels) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def checked(probabilities: AnyArray, labels: AnyArray, *args: Any, **options: Any) -> float:
        options = {name: check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_probabilities(probabilities, labels), *map(check_bins, args), **options)
        )

    return checked


def _weighted_gap(summary: binning.Summary) -> float:
    return np.nansum(summary.count * summary.gap()) / summary.count.sum()


@_of_confidence
def ece(confidence: Confidence, correct: Correct, bins: int = 25) -> float:
    """Mean gap between confidence and accuracy in equal-width bins (Guo et al., 2017)."""
    index = binning.equal_width(confidence, bins)
    return _weighted_gap(binning.summarise(confidence, correct, index, bins))


@_of_confidence
def brier(confidence: Confidence, correct: Correct) -> float:
    """Mean squared distance between confidence and correctness (Brier, 1950)."""
    return ((confidence - correct) ** 2).mean()


@_of_confidence
def ace(confidence: Confidence, correct: Correct, bins: int = 25) -> float:
    """Mean gap in bins of equal count, of the predicted class only (after Nixon et al., 2019)."""
    index = binning.quantile(confidence, bins)
    return _weighted_gap(binning.summarise(confidence, correct, index, bins))


@_of_confidence
def mce(confidence: Confidence, correct: Correct, bins: int = 25) -> float:
    """Largest gap of any non-empty equal-width bin, however few it holds (Naeini et al., 2015)."""
    index = binning.equal_width(confidence, bins)
    return np.nanmax(binning.summarise(confidence, correct, index, bins).gap())


@_of_confidence
def ks(confidence: Confidence, correct: Correct) -> float:
    """Largest gap between cumulative confidence and cumulative accuracy (Gupta et al., 2021)."""
    # Summed by distinct value: inside a tie the order of samples, and so the gap, is arbitrary.
    _, group = np.unique(confidence, return_inverse=True)
    return abs(np.bincount(group, weights=confidence - correct).cumsum()).max() / len(correct)


@_of_confidence
def ks_released(confidence: Confidence, correct: Correct) -> float:
    """The "KS" of the paper's released code, which sorts by correctness, not by confidence.

    Its arguments are swapped, which makes it max(A, B - A) with A the confidence lost on wrong
    samples and B that missing on right ones: a calibrated predictor scores its Brier score, not
    0. Here to compare with the paper's tables, not to judge a calibrator.
    """
    on_wrong = confidence[~correct].sum() / len(correct)
    missing_on_right = (1 - confidence[correct]).sum() / len(correct)
    return max(on_wrong, missing_on_right - on_wrong)


@_of_confidence
def auroc(confidence: Confidence, correct: Correct) -> float:
    """Chance that a right sample outranks a wrong one (Hendrycks & Gimpel, 2017); nan if none."""
    from sklearn.metrics import roc_auc_score

    if correct.all() or not correct.any():
        return np.nan
    return roc_auc_score(correct, confidence)


@_of_probabilities
def nll(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Mean negative log-probability of the true class."""
    of_true = probabilities[np.arange(len(labels)), labels]
    # A probability that rounding turned to 0 must not make the mean infinite; scikit-learn's
    # log_loss has the same floor.
    return -np.log(np.clip(of_true, np.finfo(np.float64).eps, 1)).mean()


@_of_probabilities
def classwise_ece(probabilities: Probabilities, labels: TrueClasses, bins: int = 25) -> float:
    """Mean over classes of each one's ECE, probabilities of 0 left out (Nixon et al., 2019)."""
    n, c = probabilities.shape
    total = 0.0
    for k in range(c):  # one class at a time: 50,000 x 1,000 at once would need gigabytes
        some = probabilities[:, k] > 0
        excess = probabilities[some, k] - (labels[some] == k)
        index = binning.equal_width(probabilities[some, k], bins)
        total += abs(np.bincount(index, weights=excess)).sum()
    return total / (n * c)


@_of_confidence
def smooth_ece(confidence: Confidence, correct: Correct) -> float:
    """ECE smoothed at the width that equals its own value (Blasiok & Nakkiran, 2023)."""
    excess = np.bincount(
        smoothing.cell_of(confidence), weights=confidence - correct, minlength=smoothing.CELLS
    )
    return smoothing.fixed_point_bandwidth(excess[None] / len(correct))[0]


@_of_confidence
def aurc(confidence: Confidence, correct: Correct) -> float:
    """Mean over k of the error rate among the k most confident (Geifman et al., 2019)."""
    _, group, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    # Each sample of a tie gets the tie's mean error: the average over every order of the tie.
    error = np.repeat(np.bincount(group, weights=~correct) / count, count)
    return (error.cumsum() / np.arange(1, len(error) + 1)).mean()


@_of_confidence
def confidence_gap(confidence: Confidence, correct: Correct) -> float:
    """Mean confidence when wrong minus when right, the paper's E^diff; nan if either is never."""
    if correct.all() or not correct.any():
        return np.nan
    return confidence[~correct].mean() - confidence[correct].mean()


@_of_probabilities
def narrowly_wrong(probabilities: Probabilities, labels: TrueClasses) -> float:
    """Share of all samples that are wrong with p_true / p_predicted > 0.5, as in the paper."""
    rows = np.arange(len(labels))
    predicted = probabilities.argmax(-1)
    near = probabilities[rows, labels] > 0.5 * probabilities[rows, predicted]
    return (near & (predicted != labels)).mean()


# In the order of the paper's table, then what the paper does not report.
METRICS: dict[str, Metric] = {
    "ece": Metric(ece),
    "brier": Metric(brier),
    "ace": Metric(ace),
    "mce": Metric(mce),
    "ks": Metric(ks),
    "ks_released": Metric(ks_released),
    "auroc": Metric(auroc, lower_is_better=False),
    "nll": Metric(nll, takes="probabilities"),
    "classwise_ece": Metric(classwise_ece, takes="probabilities"),
    "smooth_ece": Metric(smooth_ece),
    "aurc": Metric(aurc),
    "confidence_gap": Metric(confidence_gap),
    "narrowly_wrong": Metric(narrowly_wrong, lower_is_better=None, takes="probabilities"),
}
