"""Metrics that are functions of sums over samples: batches add up in constant memory."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rightly.metrics import binning
from rightly.shapes import Confidence, Correct, Probabilities, TrueClasses

State = tuple[np.ndarray, ...]  # arrays of fixed shapes; those of two batches add up


@dataclass(frozen=True)
class Sums:
    """A metric in two steps: what is summed over samples, and the value of the sums."""

    collect: Callable[..., State]  # of the metric's two inputs, checked, and its options
    measure: Callable[..., float]  # of the arrays, added up


def by_bin(confidence: Confidence, correct: Correct, bins: int = binning.BINS) -> State:
    """In each equal-width bin: samples, and confidence minus correctness."""
    index = binning.assign_equal_width(confidence, bins)
    count = np.bincount(index, minlength=bins)
    return count, np.bincount(index, weights=confidence - correct, minlength=bins)


def by_bin_with_variance(
    confidence: Confidence, correct: Correct, bins: int = binning.BINS
) -> State:
    """The same, and the variance that correctness has if confidence is calibrated."""
    index = binning.assign_equal_width(confidence, bins)
    variance = np.bincount(index, weights=confidence * (1 - confidence), minlength=bins)
    return *by_bin(confidence, correct, bins), variance


def ece(count: np.ndarray, excess: np.ndarray) -> float:
    return abs(excess).sum() / count.sum()


def ece_l2(count: np.ndarray, excess: np.ndarray) -> float:
    return np.sqrt((excess**2 / np.maximum(count, 1)).sum() / count.sum())


def mce(count: np.ndarray, excess: np.ndarray) -> float:
    return (abs(excess) / np.maximum(count, 1)).max()


def ece_debiased(count: np.ndarray, excess: np.ndarray, variance: np.ndarray) -> float:
    by_chance = binning.expected_excess_by_chance(excess[None], variance[None], 1.0 * count[None])
    return max(0.0, abs(excess).sum() - by_chance[0]) / count.sum()


def squares(confidence: Confidence, correct: Correct) -> State:
    return _sum((confidence - correct) ** 2)


def by_cell(confidence: Confidence, correct: Correct) -> State:
    """Samples, and confidence minus correctness in each cell of the fine grid."""
    cells = binning.assign_cells(confidence)
    excess = np.bincount(cells, weights=confidence - correct, minlength=binning.CELLS)
    return np.array(len(cells)), excess


def smooth_ece(count: np.ndarray, excess: np.ndarray) -> float:
    return binning.fixed_point_bandwidth(excess[None] / count)[0]


def by_outcome(confidence: Confidence, correct: Correct) -> State:
    """Of wrong and of right samples: how many, and their confidence; what right ones lack."""
    wrong, right = confidence[~correct], confidence[correct]
    count = np.array([len(wrong), len(right)])
    return count, np.array([wrong.sum(), right.sum(), (1 - right).sum()])


def ks_released(count: np.ndarray, sums: np.ndarray) -> float:
    on_wrong, missing_on_right = sums[0] / count.sum(), sums[2] / count.sum()
    return max(on_wrong, missing_on_right - on_wrong)


def confidence_gap(count: np.ndarray, sums: np.ndarray) -> float:
    return sums[0] / count[0] - sums[1] / count[1] if count.all() else np.nan


def surprise(probabilities: Probabilities, labels: TrueClasses) -> State:
    true_probability = probabilities[np.arange(len(labels)), labels]
    # A probability that rounding turned to 0 must not make the mean infinite; scikit-learn's
    # log_loss has the same floor.
    return _sum(-np.log(np.clip(true_probability, np.finfo(np.float64).eps, 1)))


def class_squares(probabilities: Probabilities, labels: TrueClasses) -> State:
    true_probability = probabilities[np.arange(len(labels)), labels]
    # (p - 1)^2 = p^2 + 1 - 2 p at the true class, without a copy of all probabilities.
    squares = np.einsum("nc,nc->n", probabilities, probabilities) + 1 - 2 * true_probability
    return _sum(np.maximum(squares, 0))


def by_class_and_bin(
    probabilities: Probabilities, labels: TrueClasses, bins: int = binning.BINS
) -> State:
    """Samples, and probability minus truth in each bin of each class, probabilities of 0 not."""
    n, c = probabilities.shape
    excess = np.zeros((c, bins))
    for k in range(c):  # one class at a time: 50,000 x 1,000 at once would need gigabytes
        rows = probabilities[:, k] > 0
        weights = probabilities[rows, k] - (labels[rows] == k)
        index = binning.assign_equal_width(probabilities[rows, k], bins)
        excess[k] = np.bincount(index, weights=weights, minlength=bins)
    return np.array(n), excess


def classwise_ece(count: np.ndarray, excess: np.ndarray) -> float:
    return abs(excess).sum() / (count * len(excess))


def near_misses(probabilities: Probabilities, labels: TrueClasses) -> State:
    rows = np.arange(len(labels))
    predicted = probabilities.argmax(-1) if len(labels) else labels
    near = probabilities[rows, labels] > 0.5 * probabilities[rows, predicted]
    return _sum(near & (predicted != labels))


def mean(count: np.ndarray, total: np.ndarray) -> float:
    return total / count


def _sum(values: np.ndarray) -> State:
    return np.array(len(values)), np.array(values.sum(), dtype=np.float64)
