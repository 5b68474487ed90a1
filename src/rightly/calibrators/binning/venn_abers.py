"""Inductive Venn-Abers predictors (Vovk et al., 2015): two isotonic regressions, one answer.

A sample is added to the calibration data once as wrong and once as right. The isotonic regressions
of both give it p0 and p1, between which its probability lies; the answer is p1 / (1 - p0 + p1).
Both are step functions of the score, found for all scores in one sweep over the corners of the
cumulative sums' greatest convex minorant.
"""

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators.base import Calibrator
from rightly.calibrators.binning.class_tables import (
    ClassTables,
    merge_ties,
    stack_padded,
    take_in_rows,
)
from rightly.calibrators.confidence_pairs import own_confidence, sorted_pairs
from rightly.calibrators.solvers.piecewise import count_below, count_below_in_rows
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample

Point = tuple[float, float]


class Answers(NamedTuple):
    """Ascending scores, and what is answered at each, between it and the next, and below all."""

    xs: np.ndarray
    at: np.ndarray
    above: np.ndarray
    below_all: float


@final
class VennAbers(Calibrator):
    """For the predicted class alone: the probability that it is right, from its confidence."""

    stores = {
        "xs": Stored("k", 0, 1 + 1e-6, is_ascending=True),
        "at": Stored("k", 0, 1),
        "above": Stored("k", 0, 1),
        "below_all": Stored("", 0, 1),
    }

    xs: Tensor  # scores of the calibration samples
    at: Tensor  # the answer for a score equal to one of them
    above: Tensor  # for a score between it and the next
    below_all: Tensor  # for a score below all of them

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        answers = find_answers(*sorted_pairs(predictions, labels))
        device = predictions.logits.device
        tensors = {name: torch.as_tensor(each) for name, each in answers._asdict().items()}
        self.store(**{name: each.double().to(device) for name, each in tensors.items()})

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        score = own_confidence(predictions)
        place = count_below(self.xs, score)
        own = place.clamp_max(len(self.xs) - 1)
        is_equal = (place < len(self.xs)) & (self.xs[own] == score)
        between = torch.where(place > 0, self.above[(place - 1).clamp_min(0)], self.below_all)
        return torch.where(is_equal, self.at[own], between)


@final
class VennAbersOneVsRest(ClassTables):
    """For every class against the rest; rows are then divided by their sums."""

    stores = {
        "xs": Stored("c k", 0, 1 + 1e-6, is_ascending=True),
        "at": Stored("c k", 0, 1),
        "above": Stored("c k", 0, 1),
        "below_all": Stored("c", 0, 1),
    }

    xs: Tensor
    at: Tensor
    above: Tensor
    below_all: Tensor

    def learn_classes(self, classes: Iterator[tuple[np.ndarray, np.ndarray]]) -> dict[str, Tensor]:
        answers = [find_answers(*one) for one in classes]
        return {
            "xs": stack_padded([each.xs for each in answers]),
            "at": stack_padded([each.at for each in answers]),
            "above": stack_padded([each.above for each in answers]),
            "below_all": torch.tensor([each.below_all for each in answers], dtype=torch.float64),
        }

    def map_classes(self, p: Logits) -> Logits:
        length = self.xs.shape[1]
        place = count_below_in_rows(self.xs, p)
        own = place.clamp_max(length - 1)
        is_equal = (place < length) & (take_in_rows(self.xs, own) == p)
        above = take_in_rows(self.above, (place - 1).clamp_min(0))
        between = torch.where(place > 0, above, self.below_all)
        return torch.where(is_equal, take_in_rows(self.at, own), between)


def find_answers(scores: np.ndarray, targets: np.ndarray) -> Answers:
    """Those of all scores; where they stay the same over neighbours, these are left out."""
    xs, sums, count = merge_ties(scores, targets)
    upper = find_upper(sums, count)
    # Right and wrong change places when the scores are turned round.
    lower = 1 - find_upper((count - sums)[::-1], count[::-1])[::-1]
    # Between two scores, p1 is that of the next and p0 that of the last.
    next_upper = np.append(upper[1:], 1.0)
    at, above = merge(lower, upper), merge(lower, next_upper)
    below_all = float(merge(np.zeros(1), upper[:1])[0])
    before = np.append(below_all, above[:-1])
    is_kept = (at != before) | (above != before)
    is_kept[0] = True
    return Answers(xs[is_kept], at[is_kept], above[is_kept], below_all)


def merge(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """One probability from two, with the least regret in log loss."""
    # Rounded, because answers that differ by the last digit are one, and must rank as one.
    answer: np.ndarray = np.round(upper / (1 - lower + upper), 12).clip(0, 1)
    return answer


def find_upper(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    """At each score, the isotonic regression of all samples and one more there, with target 1."""
    points = np.column_stack([np.append(0, count.cumsum()), np.append(0, sums.cumsum())])
    path: list[Point] = [(-1.0, -1.0), *map(tuple, points.tolist())]
    stack: list[Point] = []
    for point in reversed(path):  # the corners of the minorant, the leftmost on top
        while len(stack) > 1 and _turns_down(point, stack[-1], stack[-2]):
            stack.pop()
        stack.append(point)
    upper = np.empty(len(sums))
    moved = path[0]  # the last point before the added sample, less that sample
    for i in range(len(sums)):
        (x0, y0), (x1, y1) = stack[-1], stack[-2]
        upper[i] = (y1 - y0) / (x1 - x0)
        here, following = path[i + 1], path[i + 2]
        moved = (moved[0] + following[0] - here[0], moved[1] + following[1] - here[1])
        if (moved[0] - x0) * (y1 - y0) <= (moved[1] - y0) * (x1 - x0):
            continue  # it lies on or above the line
        stack.pop()
        while len(stack) > 1 and _turns_down(moved, stack[-1], stack[-2]):
            stack.pop()
        stack.append(moved)
    return upper.clip(0, 1)


def _turns_down(a: Point, b: Point, c: Point) -> bool:
    """Whether b lies on or above the line from a to c, a being the leftmost."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
