"""What one-against-the-rest methods share: a table of values for each class's probability."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits

LEAST_SUM = 1e-12  # of a row's values: below, nothing is known, and probabilities stay as they are


class ClassTables(VectorCalibrator):
    """A map of each class's probability of its own; rows are then divided by their sums.

    The sums of rows are far from 1 where classes are many and each has few samples, and the class
    with the largest share can change.
    """

    keeps_class = False

    @abstractmethod
    def map_classes(self, p: Logits) -> Logits:
        """What each entry becomes before rows are divided by their sums."""

    @abstractmethod
    def learn_classes(self, classes: Iterator[tuple[np.ndarray, np.ndarray]]) -> dict[str, Tensor]:
        """What to store, from each class's probabilities, ascending, and whether it is the true."""

    @final
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        stored = self.learn_classes(_iterate_classes(predictions.logits, labels))
        device = predictions.logits.device
        self.store(**{name: tensor.to(device) for name, tensor in stored.items()})

    @final
    def compute_vectors(self, logits: Logits) -> Logits:
        p = logits.double().softmax(-1)
        values = self.map_classes(p)
        total = values.sum(-1, keepdim=True)
        is_known = total > LEAST_SUM
        return torch.where(is_known, values / torch.where(is_known, total, 1.0), p)


def _iterate_classes(logits: Logits, labels: Labels) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each class, its probabilities in ascending order, and 1.0 where it is the true one."""
    parts = [logits[rows].double().softmax(-1) for rows in iterate_chunks(logits)]
    p, true = torch.cat(parts).cpu().numpy(), labels.cpu().numpy()
    for j in range(p.shape[1]):
        column, is_true = np.ascontiguousarray(p[:, j]), (true == j).astype(float)
        order = np.argsort(column)
        yield column[order], is_true[order]


def merge_ties(xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct xs of the ascending ones, the sum of ys at each, and their number."""
    first = np.flatnonzero(np.append(True, np.diff(xs) > 0))
    count = np.diff(np.append(first, len(xs)))
    return xs[first], np.add.reduceat(ys, first), count


def stack_padded(tables: list[np.ndarray]) -> Tensor:
    """Tables of different lengths as rows, each filled up with its last value."""
    longest = max(map(len, tables))
    rows = [np.pad(table, (0, longest - len(table)), mode="edge") for table in tables]
    return torch.from_numpy(np.stack(rows))


def take_in_rows(tables: Tensor, place: Tensor) -> Tensor:
    """Entry place[i, j] of row j, for all i and j."""
    length = tables.shape[1]
    begin = length * torch.arange(len(tables), device=place.device)
    return tables.flatten()[begin + place]
