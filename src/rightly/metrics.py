"""How honest a confidence is. A metric maps (confidence, correct) to a float, in NumPy.

A few need the whole distribution and map (probabilities, labels) to a float instead.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, NamedTuple

import numpy as np

from rightly import bins as binning
from rightly.shapes import AnyArray, Confidence, Correct, Probabilities, TrueClasses

Measure = Callable[..., float]


class Metric(NamedTuple):
    """A measure, its direction (None: a diagnostic, neither is better) and what it looks at."""

    measure: Measure
    lower_is_better: bool | None = True
    takes: Literal["confidence", "probabilities"] = "confidence"


def check_confidence(confidence: AnyArray, correct: AnyArray) -> tuple[Confidence, Correct]:
    """Refuse swapped, mis-shaped or out-of-range vectors; return float64 and boolean ones."""
    c, a = _to_numpy("confidence", confidence), _to_numpy("correct", correct)
    if a.size and a.dtype != bool:
        raise TypeError(
            f"correct must be boolean, got {a.dtype}: are the arguments swapped? "
            "Pass predictions == labels, or 0/1 numbers as correct.astype(bool)"
        )
    if c.ndim != 1 or not c.size:
        raise ValueError(
            f"confidence must be a non-empty vector, one number per sample, got shape {c.shape}: "
            "pass the predicted class's probability, e.g. probabilities.max(-1)"
        )
    if a.shape != c.shape:
        raise ValueError(
            f"correct must have shape {c.shape} like confidence, got {a.shape}: "
            "pass both for the same samples"
        )
    c = _to_float("confidence", c)
    # One part in 1e9 above 1 is what adding a tie-breaking epsilon or renormalising leaves.
    if c.min() < 0 or c.max() > 1 + 1e-9:
        raise ValueError(
            f"confidence must lie in [0, 1], got values from {c.min():g} to {c.max():g}: "
            "pass probabilities, not logits or percentages"
        )
    return np.minimum(c, 1.0), a.astype(bool)


def check_probabilities(
    probabilities: AnyArray, labels: AnyArray
) -> tuple[Probabilities, TrueClasses]:
    """Refuse swapped or mis-shaped arrays, rows that are no distribution, unknown classes."""
    p, y = _to_numpy("probabilities", probabilities), _to_numpy("labels", labels)
    if y.size and y.dtype.kind not in "iu":
        raise TypeError(
            f"labels must be integers, got {y.dtype}: are the arguments swapped? "
            "Pass class indices, e.g. labels.astype(int)"
        )
    if p.ndim != 2 or not p.size:
        raise ValueError(
            f"probabilities must have shape (n, c), one row per sample, got {p.shape}: "
            "for two classes pass both columns, 1 - p and p"
        )
    if y.shape != p.shape[:1]:
        raise ValueError(
            f"labels must have shape {p.shape[:1]} like the rows of probabilities, got {y.shape}: "
            "pass both for the same samples"
        )
    p = _to_float("probabilities", p)
    total = p.sum(-1)
    if p.min() < 0 or abs(total - 1).max() > 1e-3:  # what a softmax in float16 leaves
        raise ValueError(
            f"probabilities must be non-negative with rows that sum to 1, got a minimum of "
            f"{p.min():g} and sums from {total.min():g} to {total.max():g}: "
            "pass logits through softmax, in float32 or better"
        )
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(
            f"labels must lie in [0, {p.shape[1] - 1}] as probabilities have {p.shape[1]} columns, "
            f"got {y.min()} to {y.max()}: count classes from 0, in the order of the columns"
        )
    return p, y.astype(np.int64)


def _to_numpy(name: str, value: AnyArray) -> np.ndarray:
    if hasattr(value, "detach"):  # a torch tensor, told by its method so that torch stays out
        tensor = value.detach().cpu()
        # NumPy has no bfloat16.
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array, got {value!r:.40}: make rows equally long"
        ) from error


def _to_float(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers, got {array.dtype}: convert with {name}.astype(float)"
        )
    bad = array.size - np.isfinite(array).sum()
    if bad:
        raise ValueError(
            f"{name} must be finite, got {bad} of {array.size} nan or infinite: "
            "drop those samples or repair the model that gave them"
        )
    return array.astype(np.float64, copy=False)


def _check_bins(bins: object) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
        raise TypeError(f"bins must be a whole number, got {bins!r}: pass for instance 25")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}: pass for instance 25")
    return int(bins)


def _of_confidence(measure: Measure) -> Measure:
    """Check (confidence, correct) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def checked(confidence: AnyArray, correct: AnyArray, *args: Any, **options: Any) -> float:
        options = {name: _check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_confidence(confidence, correct), *map(_check_bins, args), **options)
        )

    return checked


def _of_probabilities(measure: Measure) -> Measure:
    """Check (probabilities, labels) at the door; bins is the only option a metric has."""

    @wraps(measure)
    def checked(probabilities: AnyArray, labels: AnyArray, *args: Any, **options: Any) -> float:
        options = {name: _check_bins(value) for name, value in options.items()}
        return float(
            measure(*check_probabilities(probabilities, labels), *map(_check_bins, args), **options)
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
    from scipy.ndimage import gaussian_filter1d

    cells = 1000  # finer than the width found on 1e5 calibrated samples, 0.007
    cell = np.minimum((confidence * cells).astype(int), cells - 1)
    excess = np.bincount(cell, weights=confidence - correct, minlength=cells) / len(correct)
    # Smoothing only ever lowers the sum, to that of all excess at infinite width, so the width
    # where the two are equal is unique and lies between 0 and the unsmoothed sum.
    low, high = 0.0, abs(excess).sum()
    while high - low > 1e-6:
        width = (low + high) / 2
        # "reflect" mirrors at the cells' outer edges, that is at 0 and at 1, so no mass is lost.
        if abs(gaussian_filter1d(excess, width * cells, mode="reflect")).sum() > width:
            low = width
        else:
            high = width
    return high


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
