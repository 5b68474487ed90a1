"""Which calibrator to use, by the calibration data alone.

Every candidate is fitted on some images and judged on others, by the squared error of its
confidence. Where there are images under synthetic shifts, these judge too: with the images, some
kinds of shifts are left out of each fit, and only those judge it. The simplest candidate wins that
is not worse than the best by more than one standard error of their difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rightly.calibrators import CALIBRATORS, calibrator
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray

# From the simplest on.
CANDIDATES = (
    "uncalibrated",
    "temperature_scaling",
    "ensemble_temperature_scaling",
    "spline",
    "ca_views",
    "correctness_network",
    "correctness_logistic",
)
FOLDS = 4
EXPECTED_SHIFT = 0.5

Announce = Callable[[str], object]


@dataclass(frozen=True)
class Judged:
    """One candidate: its loss, and by how much it exceeds the smallest, with a standard error."""

    method: str
    unshifted: float
    shifted: float | None
    loss: float
    excess: float
    error: float


@dataclass(frozen=True)
class Choice:
    """The method chosen, why, and how all candidates did, from the simplest on."""

    method: str
    reason: str
    judged: tuple[Judged, ...]


def choose(
    predictions: Predictions,
    labels: AnyArray,
    candidates: Sequence[str] = CANDIDATES,
    *,
    expected_shift: float = EXPECTED_SHIFT,
    folds: int = FOLDS,
    announce: Announce = lambda message: None,
) -> Choice:
    """Compares candidates, given from the simplest on, by cross-validation on calibration data.

    `expected_shift` is the weight of shifted images in the comparison, where there are any, and in the
    candidates that know it. Candidates whose inputs are missing are left out.
    """
    if not 0 <= expected_shift <= 1:
        raise ValueError(f"expected_shift must lie between 0 and 1, got {expected_shift}")
    image = predictions.image_ranks()
    if not 2 <= folds <= int(image.max()) + 1:
        raise ValueError(f"folds must be between 2 and the number of images, got {folds}")
    known = check_labels(labels, predictions)
    able = [
        name
        for name in candidates
        if all(getattr(predictions, need) is not None for need in CALIBRATORS.find(name).needs)
    ]
    if not able:
        raise ValueError(f"candidates must be some of {', '.join(CALIBRATORS)} that can be fitted")
    fold, kind = image % folds, predictions.shift_kinds()
    judging = (kind == 0) | (kind % folds == fold)
    losses = {}
    for name in able:
        announce(name)
        options: dict[str, Any] = (
            {"expected_shift": expected_shift}
            if CALIBRATORS.find(name).takes("expected_shift")
            else {}
        )
        confidence = torch.zeros(len(predictions), dtype=torch.float64)
        for out in range(folds):
            seen = (fold != out) & ((kind == 0) | (kind % folds != out))
            judged = judging & (fold == out)
            if judged.any():
                fitted = calibrator(name, **options).fit(predictions[seen], known[seen])
                confidence[judged.cpu()] = fitted.confidence(predictions[judged]).cpu()
        squares = (confidence - (predictions.classes == known).double().cpu()).square()
        losses[name] = squares[judging.cpu()].numpy()
    return _chosen(losses, kind[judging].cpu().numpy(), expected_shift)


def _chosen(losses: dict[str, np.ndarray], kind: np.ndarray, expected_shift: float) -> Choice:
    parts = _parts(kind, expected_shift)
    means = {name: _mean(loss, parts) for name, loss in losses.items()}
    best = min(means, key=lambda name: means[name])
    shifted = [rows for rows, _ in parts[1:]]
    judged = []
    for name, loss in losses.items():
        difference = loss - losses[best]
        judged.append(
            Judged(
                name,
                float(loss[parts[0][0]].mean()),
                float(np.mean([loss[rows].mean() for rows in shifted])) if shifted else None,
                means[name],
                _mean(difference, parts),
                _standard_error(difference, parts),
            )
        )
    chosen = next(one for one in judged if one.excess <= one.error)
    return Choice(chosen.method, _reason(chosen, best), tuple(judged))


def _parts(kind: np.ndarray, expected_shift: float) -> list[tuple[np.ndarray, float]]:
    """Rows that judge together, and their weight: the images as they are, then each shift."""
    values = [value for value in np.unique(kind).tolist() if value]
    if not values:
        return [(kind == 0, 1.0)]
    return [
        (kind == 0, 1 - expected_shift),
        *((kind == value, expected_shift / len(values)) for value in values),
    ]


def _mean(loss: np.ndarray, parts: Sequence[tuple[np.ndarray, float]]) -> float:
    return float(sum(weight * loss[rows].mean() for rows, weight in parts))


def _standard_error(loss: np.ndarray, parts: Sequence[tuple[np.ndarray, float]]) -> float:
    variance = sum(weight**2 * loss[rows].var() / rows.sum() for rows, weight in parts)
    return float(np.sqrt(variance))


def _reason(chosen: Judged, best: str) -> str:
    if chosen.method == best:
        told = "it has the smallest loss, and nothing simpler comes within one standard error of it"
    else:
        told = (
            f"it is the simplest within one standard error of {best}, the best: worse by "
            f"{100 * chosen.excess:.3f}, with an error of {100 * chosen.error:.3f}"
        )
    if chosen.method == "uncalibrated":
        return f"leave the classifier as it is: {told}"
    return f"{chosen.method}: {told}"
