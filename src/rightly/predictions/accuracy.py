"""Accuracy of predictions, and the warning where labels and predictions seem unrelated."""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from rightly.predictions.labels import check_labels
from rightly.predictions.parquet import open_shards, read_columns
from rightly.predictions.predictions import Predictions
from rightly.shapes import AnyArray

LEVEL = 0.01  # of the test against chance
FEWEST = 30  # samples that are tested: of fewer, good classifiers fail the test too


def warn_at_chance(name: str, predictions: Predictions, labels: AnyArray) -> None:
    """Warns if accuracy is not above chance."""
    _warn_of(name, *_count(predictions, labels))


def find_chance(predictions: Predictions, labels: AnyArray) -> float | None:
    """The accuracy of chance, if that of the predictions is not above it."""
    return _find_chance(*_count(predictions, labels))


def _count(predictions: Predictions, labels: AnyArray) -> tuple[int, np.ndarray, np.ndarray]:
    """Right predictions; labels and predictions by class."""
    truth, size = check_labels(labels, predictions), predictions.class_count
    counts = [torch.bincount(x, minlength=size).cpu().numpy() for x in (truth, predictions.classes)]
    return int((predictions.classes == truth).sum()), counts[0], counts[1]


def _find_chance(right: int, labels: np.ndarray, classes: np.ndarray) -> float | None:
    """The accuracy of chance, if so many right predictions are not above it.

    `labels` and `classes` are counts by class. Chance is what the same labels in another order
    would give, the expected agreement of Cohen's kappa: it knows how frequent classes are. Not
    above it means that a one-sided binomial test does not tell the two apart.
    """
    from scipy.special import bdtrc

    count = int(labels.sum())
    chance = float((labels / count) @ (classes / count))
    if (labels > 0).sum() < 2 or count < FEWEST:  # labels of one class cannot be in a wrong order
        return None
    return chance if right == 0 or bdtrc(right - 1, count, chance) > LEVEL else None


def _warn_of(name: str, right: int, labels: np.ndarray, classes: np.ndarray) -> None:
    chance = _find_chance(right, labels, classes)
    if chance is not None:
        warnings.warn(
            f"{name} has {right / labels.sum():.1%} accuracy, which is not above chance "
            f"({chance:.1%}): do labels and predictions stand in the same order, and do both "
            "number the classes alike?",
            UserWarning,
            stacklevel=4,
        )


def read_accuracy(path: Path) -> dict[str, float]:
    """Accuracy of a collected data set by shift, "" for images as they are; empty without labels.

    Reads shard by shard, and warns if accuracy on the images as they are is not above chance.
    """
    shards, settings = open_shards(path)
    right, count = Counter[int](), Counter[int]()
    labels_seen, classes_seen = Counter[int](), Counter[int]()
    for shard in shards:
        columns = read_columns(shard, settings, ["label", "shift", "logits"])
        labels, shift = columns["label"], columns["shift"]
        if (labels < 0).any():
            return {}
        if len(labels):
            classes, as_is = columns["logits"].argmax(1), shift == 0
            right.update(shift[classes == labels].tolist())
            count.update(shift.tolist())
            labels_seen.update(labels[as_is].tolist())
            classes_seen.update(classes[as_is].tolist())
    both = sorted({*labels_seen, *classes_seen})
    counts = [np.array([seen[k] for k in both]) for seen in (labels_seen, classes_seen)]
    _warn_of(str(path), right[0], *counts)
    names = ("", *settings["shifts"])
    return {names[i]: right[i] / count[i] for i in sorted(count)}
