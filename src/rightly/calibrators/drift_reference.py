"""What samples without drift look like, for alarms when others come.

Three things are watched of every sample: its score (whose level is the shift estimate), its
confidence and the share of views that agree. Each is counted from a centre of the predicted class.
These centres are chosen so that the mean over every *true* class is 0: if only the mix of classes
changes, means stay 0, so that it is not taken for a shift.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import expit
from torch import Tensor, nn

from rightly.calibrators.stored_tensors import Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels, PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

CHANNELS = ("shift score", "confidence", "agreement")
PRIOR = 20.0  # samples' worth by which a centre is drawn to the mean of all
KEPT = 2000  # rows from which years are simulated
SKEW = 0.3  # of the Dirichlet distribution of skewed classes
SKEWS = 200  # class mixes tried


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Cross-fitted scores of one kind of rows."""

    score: Float[np.ndarray, " n"]
    predicted: Int[np.ndarray, " n"]
    label: Int[np.ndarray, " n"]
    image: Int[np.ndarray, " n"]  # 0..k-1: the row of the unshifted image
    agreement: Float[np.ndarray, " n"]  # share of views that agree; 1 without views

    @property
    def correct(self) -> Bool[np.ndarray, " n"]:
        correct: np.ndarray = self.predicted == self.label
        return correct

    def take(self, rows: np.ndarray) -> "ScoredRows":
        return ScoredRows(**{name: column[rows] for name, column in vars(self).items()})


class DriftReference(nn.Module):
    """Cross-fitted calibration rows, as far as alarms need them."""

    stores = {
        "centres": Stored("c 3"),
        "scale": Stored("3", low=0),
        "allowance": Stored("3", low=0),
        "counts": Stored("c", low=0, is_integer=True),
        "rows": Stored("r 3"),
        "row_classes": Stored("r", low=0, is_integer=True),
        "row_labels": Stored("r", low=0, is_integer=True),
    }

    centres: Tensor  # (c, 3): of each predicted class, in the order of CHANNELS
    scale: Tensor  # (3,): standard deviation of a sample; 0 where there is none to watch
    allowance: Tensor  # (3,): how far another mix of classes may move means, in units of scale
    counts: Tensor  # (c,): calibration samples by predicted class
    rows: Tensor  # (r, 3): some samples, less their centres and in units of scale
    row_classes: Tensor  # (r,): their predicted classes
    row_labels: Tensor  # (r,): their true classes

    def arrays(self) -> dict[str, np.ndarray]:
        """What it holds, by name."""
        return {name: tensor.cpu().numpy() for name, tensor in self.named_buffers()}


def learn_drift_reference(unshifted: ScoredRows, class_count: int) -> DriftReference:
    """From cross-fitted rows without shift."""
    rng = np.random.default_rng(0)
    values = np.stack([unshifted.score, expit(unshifted.score), unshifted.agreement], 1)
    centres = find_centres(values, unshifted, class_count)
    centred = values - centres[unshifted.predicted]
    scale = centred.std(0)
    scale[scale < 1e-9] = 0
    unit = np.where(scale > 0, scale, 1)
    chosen = np.sort(rng.permutation(len(values))[:KEPT])
    reference = DriftReference()
    counts = np.bincount(unshifted.predicted, minlength=class_count)
    for name, array in {
        "centres": centres,
        "scale": scale,
        "allowance": _find_allowance(values, unshifted, class_count, rng) / unit,
        "counts": counts.astype(np.int64),
        "rows": (centred[chosen] / unit).astype(np.float32),
        "row_classes": unshifted.predicted[chosen].astype(np.int64),
        "row_labels": unshifted.label[chosen].astype(np.int64),
    }.items():
        reference.register_buffer(name, torch.from_numpy(array))
    return reference


def find_centres(
    values: Float[np.ndarray, "n 3"], rows: ScoredRows, class_count: int
) -> Float[np.ndarray, "c 3"]:
    """Of each predicted class, so that values less centres have mean 0 in every true class.

    By ridge regression from the mean of all, every true class with the weight of its samples.
    """
    from scipy.sparse import csr_matrix, identity
    from scipy.sparse.linalg import cg

    mean, square = values.mean(0), (class_count, class_count)
    of_class = np.sqrt(np.maximum(np.bincount(rows.label, minlength=class_count), 1))
    # Rows: true classes; columns: predicted ones. Sparse, because there may be thousands.
    shares = csr_matrix((1 / of_class[rows.label], (rows.label, rows.predicted)), square)
    totals = np.zeros((class_count, values.shape[1]))
    np.add.at(totals, rows.label, (values - mean) / of_class[rows.label, None])
    normal, target = shares.T @ shares + PRIOR * identity(class_count), shares.T @ totals
    offsets = [cg(normal, column, rtol=1e-10)[0] for column in target.T]
    centres: np.ndarray = mean + np.stack(offsets, 1)
    return centres


def _find_allowance(
    values: np.ndarray, rows: ScoredRows, class_count: int, rng: np.random.Generator
) -> np.ndarray:
    """How far skewed class mixes move means, by centres of one half tried on the other."""
    is_first = rng.permutation(len(values)) % 2 == 0
    halves = [np.flatnonzero(side) for side in (is_first, ~is_first)]
    moved = []
    for fitted, tried in (halves, halves[::-1]):
        centres = find_centres(values[fitted], rows.take(fitted), class_count)
        centred = values[tried] - centres[rows.predicted[tried]]
        label = rows.label[tried]
        count = np.bincount(label, minlength=class_count)
        total = np.zeros((class_count, values.shape[1]))
        np.add.at(total, label, centred)
        shares = rng.dirichlet(np.full(class_count, SKEW), SKEWS) * (count > 0)
        shares /= np.maximum(shares.sum(1, keepdims=True), 1e-12)
        moved.append(np.abs(shares @ (total / np.maximum(count, 1)[:, None])))
    # Both halves err, each twice as much (in variance) as the centres of all rows do.
    allowance: np.ndarray = np.quantile(np.concatenate(moved), 0.9, axis=0) / 2
    return allowance


def measure_agreement(
    calibrator: "Calibrator", predictions: Predictions, classes: Labels
) -> PerSample:
    """Share of views in which each predicted class is predicted too; 1 without views."""
    if predictions.view_logits is None or not calibrator.view_names:
        return torch.ones(len(classes), dtype=torch.float64, device=classes.device)
    return (predictions.view_logits.argmax(-1) == classes[:, None]).double().mean(-1)
