"""Labels that number the classes otherwise, or belong to other rows; classes that are missing."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from rightly.decisions import exact_interval
from rightly.evaluation.examination.findings import ERROR, WARNING, Finding, name_classes
from rightly.predictions import Predictions
from rightly.predictions.rows import find_chance

LEVEL = 1e-4  # of the test that another numbering fits better, on rows that did not choose it
MOVED_SHARE = 0.3  # of the rows of the moved classes must be right after the move
FEWEST_ROWS = 30
MOST_OUTSIDE = 0.2  # share of labels of no class, up to which they are taken for unknown ones
OFFSETS = {-1: "subtract 1 from the labels", 1: "add 1 to the labels"}
PER_CLASS = 10  # samples a class on average, from where on a class is not missing by chance
ROUNDED = 0.01  # by which an expected accuracy may be rounded


def find_bad_labels(name: str, logits: Tensor, labels: np.ndarray) -> Finding | None:
    """Labels that are no class numbers: columns, fractions, or outside of the classes."""
    if labels.ndim == 2 and labels.shape == tuple(logits.shape):
        return Finding(
            name,
            "labels_one_hot",
            ERROR,
            f"labels have {labels.shape[1]} columns, one a class",
            "give the number of each true class: labels.argmax(1)",
        )
    if labels.ndim != 1 or len(labels) != len(logits) or labels.dtype.kind not in "iuf":
        return None
    whole = np.isfinite(labels) & (labels == np.floor(labels))
    if not whole.all():
        return Finding(
            name,
            "labels_missing",
            ERROR,
            f"{int((~whole).sum())} of {len(labels)} labels are no whole numbers "
            f"(such as {labels[~whole][0]})",
            "drop these rows, or label them",
        )
    return _find_out_of_range(name, logits, labels.astype(np.int64))


def _find_out_of_range(name: str, logits: Tensor, labels: np.ndarray) -> Finding | None:
    """Labels that count from 1 or from -1, or a few that are of no class."""
    c, low, high = logits.shape[1], int(labels.min()), int(labels.max())
    for offset, advice in OFFSETS.items():
        accuracy = float((logits.argmax(-1).cpu().numpy() == labels + offset).mean())
        if low + offset >= 0 and high + offset < c and accuracy > 2 / c:
            return Finding(
                name,
                "labels_off_by_one",
                ERROR,
                f"labels lie in {low}..{high} for the classes 0..{c - 1}; {accuracy:.1%} of the "
                f"predictions are right if every label is 1 {'less' if offset < 0 else 'more'}",
                advice,
            )
    outside = (labels < 0) | (labels >= c)
    if 0 < outside.mean() < MOST_OUTSIDE:
        values = ", ".join(map(str, np.unique(labels[outside])[:5]))
        return Finding(
            name,
            "labels_missing",
            ERROR,
            f"{int(outside.sum())} of {len(labels)} labels are of no class of 0..{c - 1}: {values}",
            "drop these rows: such numbers often stand for unknown",
        )
    return None


def find_negated(name: str, predictions: Predictions, labels: Tensor) -> Finding | None:
    """Scores whose smallest is the class: losses, distances, negative log-probabilities."""
    predicted, truth = predictions.classes.numpy(), labels.numpy()
    # Of few classes a permutation may make the smallest the true one.
    if predictions.class_count < 4 or len(truth) < FEWEST_ROWS:
        return None
    smallest = predictions.logits.argmin(-1).numpy()
    before, after = (float((classes == truth).mean()) for classes in (predicted, smallest))
    if after <= max(2 * before, 2 / predictions.class_count) or after < MOVED_SHARE:
        return None
    return Finding(
        name,
        "negated_scores",
        ERROR,
        f"{after:.1%} of the labels are the class with the smallest logit, and {before:.1%} that "
        "with the largest: these are losses, distances or negative log-probabilities",
        "turn their sign around",
    )


def find_other_numbering(name: str, predictions: Predictions, labels: Tensor) -> Finding | None:
    """Labels that fit far better under another numbering of the classes."""
    c, predicted, truth = predictions.class_count, predictions.classes.numpy(), labels.numpy()
    if len(truth) < FEWEST_ROWS:
        return None
    before = float((predicted == truth).mean())
    for offset, advice in OFFSETS.items():
        other = truth + offset
        if other.min() >= 0 and other.max() < c and _fits_better(predicted, truth, other):
            return Finding(
                name,
                "labels_off_by_one",
                ERROR,
                f"labels are off by one: {before:.1%} of the predictions are right, but "
                f"{(predicted == other).mean():.1%} if every label is 1 "
                f"{'less' if offset < 0 else 'more'}",
                advice,
            )
    halves = _split(truth)
    moved_classes = np.zeros(c, bool)
    for chosen, held_out in (halves, halves[::-1]):
        mapping = _match(predicted[chosen], truth[chosen], c)
        for cycle in _find_cycles(mapping):
            rows = held_out[np.isin(truth[held_out], cycle)]
            own, other = truth[rows], mapping[truth[rows]]
            if _fits_better(predicted[rows], own, other):
                moved_classes[cycle] = True
    if not moved_classes.any():
        return None
    # Classes that do not move are kept out of the matching on all rows.
    inside = np.flatnonzero(moved_classes)
    rows = np.isin(truth, inside)
    mapping = np.arange(c)
    mapping[inside] = inside[_match_within(predicted[rows], truth[rows], inside)]
    moved = [k for k in inside.tolist() if mapping[k] != k]
    after = float((predicted == mapping[truth]).mean())
    pairs = ", ".join(f"{k} -> {mapping[k]}" for k in moved[:12])
    return Finding(
        name,
        "labels_permuted",
        ERROR,
        f"labels number {len(moved)} of {c} classes otherwise than the classifier: {before:.1%} of "
        f"the predictions are right, but {after:.1%} if labels are read as {pairs}"
        f"{f' and {len(moved) - 12} more' if len(moved) > 12 else ''}",
        "give labels and class names the classifier's order (often one is sorted by name and the "
        "other by number)",
    )


def _fits_better(predicted: np.ndarray, own: np.ndarray, other: np.ndarray) -> bool:
    """Whether other labels agree with the predictions clearly more often than their own do."""
    from scipy.special import bdtrc

    gained = int(((predicted == other) & (predicted != own)).sum())
    lost = int(((predicted == own) & (predicted != other)).sum())
    if gained <= 2 * lost or gained < MOVED_SHARE * len(own):
        return False
    return float(bdtrc(gained - 1, gained + lost, 0.5)) < LEVEL


def _split(truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the rows, each with every second row of each label."""
    order = np.argsort(truth, kind="stable")
    return np.sort(order[::2]), np.sort(order[1::2])


def _match(predicted: np.ndarray, truth: np.ndarray, c: int) -> np.ndarray:
    """The class that each label stands for, one to one, so that most predictions are right."""
    return _match_within(predicted, truth, np.arange(c))


def _match_within(predicted: np.ndarray, truth: np.ndarray, classes: np.ndarray) -> np.ndarray:
    from scipy.optimize import linear_sum_assignment

    k = len(classes)
    is_inside = np.isin(predicted, classes)
    row = np.searchsorted(classes, truth[is_inside])
    column = np.searchsorted(classes, predicted[is_inside])
    confusion = np.bincount(row * k + column, minlength=k * k).reshape(k, k).astype(float)
    confusion[np.diag_indices(k)] += 0.5  # a class stays where nothing speaks for another
    matching: np.ndarray = linear_sum_assignment(confusion, maximize=True)[1]
    return matching


def _find_cycles(mapping: np.ndarray) -> Iterator[np.ndarray]:
    """The groups of classes among which a mapping moves labels."""
    seen = mapping == np.arange(len(mapping))
    for start in range(len(mapping)):
        cycle = []
        while not seen[start]:
            seen[start] = True
            cycle.append(start)
            start = int(mapping[start])
        if cycle:
            yield np.array(cycle)


def find_unrelated(name: str, predictions: Predictions, labels: Tensor) -> Finding | None:
    """Accuracy at chance: labels in another order than predictions."""
    chance = find_chance(predictions, labels)
    if chance is None:
        return None
    accuracy = float((predictions.classes == labels).double().mean())
    return Finding(
        name,
        "accuracy_at_chance",
        ERROR,
        f"{accuracy:.1%} of {len(labels)} predictions are right, which is not above the chance "
        f"level of {chance:.1%}, and no other numbering of the classes fits",
        "see that labels and predictions stand in the same order, and that the classifier gets "
        "images prepared as it was trained with",
    )


def find_unexpected_accuracy(
    name: str, predictions: Predictions, labels: Tensor, expected: float
) -> Finding | None:
    """An accuracy that chance does not explain, where it should be another."""
    right, n = int((predictions.classes == labels).sum()), len(labels)
    low, high = exact_interval(right, n, level=0.99)
    if low - ROUNDED <= expected <= high + ROUNDED:
        return None
    return Finding(
        name,
        "unexpected_accuracy",
        ERROR,
        f"{right / n:.1%} of {n} predictions are right (99 % interval {low:.1%} to {high:.1%}), "
        f"where {expected:.1%} was expected",
        "see that the classifier gets images prepared as it was trained with (size, crop, "
        "normalisation, RGB order), that these are its weights, and that none of these images was "
        "trained on",
    )


def find_missing_classes(name: str, predictions: Predictions, labels: Tensor) -> Finding | None:
    """Classes without a single sample, where so many samples should have some of each."""
    c = predictions.class_count
    if len(labels) < PER_CLASS * c:
        return None
    counts = torch.bincount(labels, minlength=c)
    missing = (counts == 0).nonzero().flatten().tolist()
    if not missing:
        return None
    predicted = int(torch.isin(predictions.classes, torch.tensor(missing)).sum())
    return Finding(
        name,
        "missing_classes",
        WARNING,
        f"no label is of {len(missing)} of {c} classes: "
        f"{name_classes(missing, predictions.class_names)}; {predicted} predictions are",
        "add samples of these classes, or expect confidence in them to be a guess",
    )
