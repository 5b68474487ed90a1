"""An isotonic regression for each class, one against the rest (Zadrozny & Elkan, 2002)."""

from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from rightly.calibrators.binning.class_tables import (
    ClassTables,
    merge_ties,
    stack_padded,
    take_in_rows,
)
from rightly.calibrators.solvers.piecewise import count_below_in_rows
from rightly.calibrators.stored_tensors import Stored
from rightly.tensor_shapes import Logits


@final
class IsotonicOneVsRest(ClassTables):
    """Rising curves, one a class, straight between the ends of their flat pieces."""

    stores = {"xs": Stored("c k", 0, 1 + 1e-6, is_ascending=True), "ys": Stored("c k", 0, 1)}

    xs: Tensor
    ys: Tensor

    def learn_classes(self, classes: Iterator[tuple[np.ndarray, np.ndarray]]) -> dict[str, Tensor]:
        corners = [find_corners(*one) for one in classes]
        xs, ys = (stack_padded([corner[i] for corner in corners]) for i in (0, 1))
        return {"xs": xs, "ys": ys}

    def map_classes(self, p: Logits) -> Logits:
        last = self.xs.shape[1] - 1
        right = count_below_in_rows(self.xs, p).clamp_max(last)
        left = (right - 1).clamp_min(0)
        x0, x1 = take_in_rows(self.xs, left), take_in_rows(self.xs, right)
        y0, y1 = take_in_rows(self.ys, left), take_in_rows(self.ys, right)
        width = x1 - x0
        share = ((p - x0) / torch.where(width > 0, width, 1.0)).clamp(0, 1)
        return torch.lerp(y0, y1, torch.where(width > 0, share, 1.0))


def find_corners(xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every flat piece of the isotonic regression of ys on ascending xs."""
    places, sums, count = merge_ties(xs, ys)
    fitted = isotonic_regression(sums / count, weights=count.astype(float)).x
    rises = np.diff(fitted) > 0
    is_corner = np.append(True, rises) | np.append(rises, True)
    return places[is_corner], fitted[is_corner].clip(0, 1)
