"""One isotonic map for all class probabilities (Zhang et al., 2020, the paper's MIR).

All n c pairs (probability of class j, is j the true class) go into one isotonic regression. Only
n of its targets are 1, and a run of 0s between two of them always ends up in one block, so the
n c points shrink to at most 2 n + 1 weighted ones: the true classes' probabilities, and the runs
between them, of which only the number and, at the end of a block, the largest value matter.
"""

from typing import final

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.solvers.execution import Scratch, is_unsynchronised, iterate_chunks
from rightly.calibrators.solvers.piecewise import LineTable, interpolate
from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, Logits, PerSample

TILT = 1e-9  # makes the map strictly increasing, so that the predicted class keeps its place
MANY = 2**15  # values from which a table pays
BUCKETS = 2**20  # of log-probability; so fine that few values share one with a true class


@final
class MultiIsotonic(VectorCalibrator):
    """A non-decreasing map of probabilities, then rows divided by their sums."""

    stores = {"xs": Stored("k", 0, 1 + 1e-6, is_ascending=True), "ys": Stored("k", 0, 1)}

    xs: torch.Tensor
    ys: torch.Tensor
    _table: LineTable | None = None  # of xs and ys, made when there are many values to map

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        xs, ys = isotonic_map(predictions.logits, labels)
        device = predictions.logits.device
        self.store(xs=torch.from_numpy(xs).to(device), ys=torch.from_numpy(ys).to(device))

    def compute_vectors(self, logits: Logits) -> Logits:
        p = logits.double().softmax(-1)
        mapped, total = self._map(p, Scratch())
        return _tilt(p, mapped, total)

    def write_vectors(self, logits: Logits, out: Logits, scratch: Scratch) -> None:
        torch.softmax(out.copy_(logits), -1, out=out)
        mapped, total = self._map(out, scratch)
        _tilt(out, mapped, total, out)

    def compute_entries(self, logits: Logits, classes: Labels, scratch: Scratch) -> PerSample:
        p = scratch.copy("p", logits, torch.float64)
        torch.softmax(p, -1, out=p)
        mapped, total = self._map(p, scratch)
        own, value = (every.gather(1, classes[:, None]).squeeze(-1) for every in (p, mapped))
        return (value + TILT * own) / (total + TILT)

    def _map(self, p: Logits, scratch: Scratch) -> tuple[Logits, PerSample]:
        """The mapped probabilities and their sums."""
        if is_unsynchronised(p) or p.numel() < MANY or len(self.xs) == 1:
            mapped = interpolate(p, self.xs, self.ys)
        else:
            if self._table is None or self._table.xs is not self.xs:
                self._table = LineTable(self.xs, self.ys)
            mapped = self._table(p, scratch)
        total = mapped.sum(-1, dtype=torch.float64)
        # Under shift a whole row can map to 0, and between equal points of saturated probabilities
        # there is no line (NaN); it then keeps its own probabilities.
        is_lost = ~(total > 1e-12)
        if is_unsynchronised(p) or is_lost.any():
            mapped = torch.where(is_lost[:, None], p, mapped)
            total = torch.where(is_lost, 1.0, total)
        return mapped, total


def _tilt(p: Logits, mapped: Logits, total: PerSample, out: Tensor | None = None) -> Logits:
    """The mapped probabilities, a little steeper, in rows that sum to 1."""
    tilted = torch.add(mapped, p, alpha=TILT, out=out)
    return tilted.mul_((total + TILT).reciprocal()[:, None])


def isotonic_map(logits: Logits, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Points of the isotonic regression of "is the true class" on probability."""
    true = torch.cat(
        [
            _log_probabilities(logits[rows]).gather(-1, labels[rows, None]).squeeze(-1)
            for rows in iterate_chunks(logits)
        ]
    )
    trues, hits = true.unique(return_counts=True)
    buckets = _Buckets(trues)
    totals = _count_slots(logits, trues, buckets)
    filled = np.flatnonzero(totals)
    weights = totals[filled].astype(float)
    ones = np.zeros(len(totals))
    ones[1::2] = hits.cpu().numpy()
    fitted = isotonic_regression(ones[filled] / weights, weights=weights).x
    return _corners(logits, trues, filled, fitted)


class _Buckets:
    """Equal steps of log-probability: 0 is below every true class's, the rest lie above."""

    def __init__(self, trues: Tensor) -> None:
        self.low = trues[0]
        self.per_unit = (BUCKETS - 2) / (trues[-1] - self.low).clamp_min(1e-30)
        self.of_trues = self(trues)
        self.shared = torch.zeros(BUCKETS, dtype=torch.bool, device=trues.device)
        self.shared[self.of_trues] = True

    def __call__(self, values: Tensor) -> Tensor:
        steps = (values - self.low) * self.per_unit
        return (steps.clamp_(-1, BUCKETS - 2).floor_() + 1).to(torch.int64)


def _count_slots(logits: Logits, trues: Tensor, buckets: _Buckets) -> np.ndarray:
    """How many values lie below, at, between and above the true classes' values.

    Slot 2 k + 1 is at the k-th of them, slot 2 k just below it. Values that share no bucket with
    one are counted by bucket; only the others are looked up.
    """
    m = len(trues)
    slots = torch.zeros(2 * m + 1, dtype=torch.int64, device=logits.device)
    histogram = torch.zeros(BUCKETS, dtype=torch.int64, device=logits.device)
    for rows in iterate_chunks(logits):
        values = _log_probabilities(logits[rows]).flatten()
        bucket = buckets(values)
        histogram += torch.bincount(bucket, minlength=BUCKETS)
        close = values[buckets.shared[bucket]]
        k = torch.searchsorted(trues, close)
        at = trues[k.clamp_max(m - 1)] == close
        slots += torch.bincount(2 * k + at, minlength=2 * m + 1)
    histogram[buckets.shared] = 0
    trues_below = torch.bincount(buckets.of_trues, minlength=BUCKETS).cumsum(0)
    slots.index_add_(0, 2 * trues_below, histogram)
    return slots.cpu().numpy()


def _corners(
    logits: Logits, trues: Tensor, filled: np.ndarray, fitted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every block, in probability; the map is linear from one block to the next.

    A run of 0s can end a block but, unless the block is 0 throughout, not begin one. So a block
    begins at a true class's value, and the one before it ends at the largest value below.
    """
    begins = np.flatnonzero(np.diff(fitted) > 0) + 1
    if not len(begins):
        return np.array([0.5]), fitted[:1]  # one block: the map is constant
    values = trues[torch.from_numpy(filled[begins] // 2).to(trues.device)]
    ends = _largest_below(logits, values)
    places = torch.stack([ends, values], 1).flatten().double().exp().cpu().numpy()
    return places, np.stack([fitted[begins - 1], fitted[begins]], 1).ravel()


def _largest_below(logits: Logits, bounds: Tensor) -> Tensor:
    """The largest log-probability below each of the ascending bounds."""
    largest = torch.full_like(bounds, -torch.inf)
    for rows in iterate_chunks(logits):
        values = _log_probabilities(logits[rows]).flatten()
        gap = torch.searchsorted(bounds, values, right=True)
        inside = gap < len(bounds)
        largest.scatter_reduce_(0, gap[inside], values[inside], "amax")
    return largest


def _log_probabilities(logits: Tensor) -> Tensor:
    return logits.log_softmax(-1)
