"""Rows that are the same but for rounding: collected twice, in float16, or in other batches."""

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.predictions import Predictions
from rightly.predictions.masking import fill_masked

NEAR = 1e-3  # of the largest logit: what float16 or another batch changes
DIMENSIONS = 8  # that logits are projected to, to look for neighbours in
MOST_ROWS = 5000  # that are looked for
BY_CHANCE = 5.0  # times as often as rows of one set must two sets agree


def are_near(logits: Tensor, others: Tensor) -> Tensor:
    """Whether rows of logits are the same but for rounding."""
    parts = []
    for rows in iterate_chunks(logits):
        first, second = _centre(logits[rows]), _centre(others[rows])
        parts.append((first - second).abs().amax(-1) <= NEAR * first.abs().amax(-1))
    return torch.cat(parts)


def measure_near(predictions: Predictions, others: Predictions) -> float:
    """Share of the rows that are among the others but for rounding.

    0 where rows are as near to rows of their own set, as with two classes or few distinct outputs:
    then nearness tells nothing.
    """
    from scipy.spatial import KDTree

    if predictions.class_count != others.class_count:
        return 0.0
    step = -(-len(predictions) // MOST_ROWS)
    rows, stored = predictions.logits[::step].cpu(), others.logits.cpu()
    places = _project(rows)
    nearest = KDTree(_project(stored)).query(places)[1]
    share = float(are_near(rows, stored[nearest]).double().mean())
    if len(rows) < 2 or not share:
        return share
    second = KDTree(places).query(places, k=2)[1][:, 1]
    by_chance = float(are_near(rows, rows[second]).double().mean())
    return share if share > BY_CHANCE * by_chance else 0.0


def _project(logits: Tensor) -> np.ndarray:
    directions = np.random.default_rng(0).standard_normal((logits.shape[1], DIMENSIONS))
    parts = [_centre(logits[rows]).numpy() @ directions for rows in iterate_chunks(logits)]
    return np.concatenate(parts)


def _centre(logits: Tensor) -> Tensor:
    filled = fill_masked(logits).double()
    return filled - filled.mean(-1, keepdim=True)
