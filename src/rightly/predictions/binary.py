"""Classifiers of two classes that have one output."""

import numpy as np
import torch
from torch import Tensor

from rightly.predictions.validation import check_finite, check_floats
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Logits


def stack_scores(scores: AnyArray) -> Logits:
    """Logits of both classes whose difference is the log-odds of class 1."""
    half = _check_column("scores", scores) / 2
    return torch.stack([-half, half], -1)


def stack_probabilities(probabilities: AnyArray) -> Logits:
    """Probabilities of both classes."""
    p = _check_column("probabilities", probabilities)
    low, high = float(p.min()), float(p.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"probabilities must lie in [0, 1], got values from {low:g} to {high:g}: use "
            "Predictions.from_binary if these are log-odds"
        )
    return torch.stack([1 - p, p], -1)


def _check_column(name: str, values: AnyArray) -> Tensor:
    raw = values if isinstance(values, Tensor) else np.asarray(values)
    if not (raw.ndim == 1 or raw.ndim == 2 and raw.shape[1] == 1):
        raise ValueError(
            f"{name} must have shape (n,) or (n, 1), one number a sample for class 1, got "
            f"{tuple(raw.shape)}: pass logits of two classes or more to Predictions"
        )
    column = check_floats(name, raw.reshape(-1, 1), "n one")
    return check_finite(name, column)[:, 0]
