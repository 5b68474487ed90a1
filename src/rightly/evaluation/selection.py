"""Method "auto": select a method by cross-validation on the calibration data.

Every candidate is cross-validated over images by the squared error of its
confidence. Where there are images under synthetic shifts, these count too: with the images, each
fit leaves out kinds of shifts, and only those evaluate it. The simplest
candidate wins that is not worse than the best by more than one standard error of their difference.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rightly.calibrators import CALIBRATORS, calibrator
from rightly.checks import check_share
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import sort_rows
from rightly.progress import Progress, track
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

Parts = Sequence[tuple[np.ndarray, float]]  # rows of one kind of shift, and their weight


def find_missing_inputs(name: str, predictions: Iterable[Predictions]) -> tuple[str, ...]:
    """What a method needs and any of these predictions lack.

    What it only uses is missing where one has it and another does not: fitted with it, it needs it.
    """
    everywhere, method = list(predictions), CALIBRATORS.find(name)

    def lack(field: str) -> list[bool]:
        return [getattr(one, field) is None for one in everywhere]

    needed = [need for need in method.needs if any(lack(need))]
    count = method.fits_classes
    if count is not None and any(one.class_count != count for one in everywhere):
        needed.append(f"{count} classes")
    used = [use for use in method.uses if any(lack(use)) and not all(lack(use))]
    return (*needed, *used)


@dataclass(frozen=True)
class Candidate:
    """A method's held-out loss, and by how much it exceeds the smallest, with a standard error."""

    method: str
    unshifted: float
    shifted: float | None
    loss: float
    excess: float
    error: float


@dataclass(frozen=True)
class MethodChoice:
    """The method chosen, why, and how all candidates did, from the simplest on."""

    method: str
    reason: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "MethodChoice":
        """From what a calibrator's record keeps of it."""
        candidates = tuple(Candidate(**each) for each in values["candidates"])
        return cls(values["method"], values["reason"], candidates)


def select_method(
    predictions: Predictions,
    labels: AnyArray,
    candidates: Sequence[str] = CANDIDATES,
    *,
    expected_shift: float = EXPECTED_SHIFT,
    folds: int = FOLDS,
    progress: Progress | bool = False,
) -> MethodChoice:
    """Selects one of the candidates, simplest first, by cross-validation on calibration data.

    `expected_shift` is the weight of shifted images in the comparison, where there are any, and in
    the candidates that take it. Candidates whose inputs are missing are skipped. `progress` is
    True for a bar, or called with each candidate, its number and how many there are.
    """
    check_share("expected_shift", expected_shift)
    predictions, truth = sort_rows(predictions, check_labels(labels, predictions))
    image = predictions.image_ranks()
    if not 2 <= folds <= int(image.max()) + 1:
        raise ValueError(f"folds must be between 2 and the number of images, got {folds}")
    methods = [
        CALIBRATORS.find(name)
        for name in candidates
        if not find_missing_inputs(name, [predictions])
    ]
    if not methods:
        raise ValueError(
            f"candidates must hold a method whose inputs are there, got {', '.join(candidates)}: "
            "add one that needs only logits, such as temperature_scaling"
        )
    fold, kind = image % folds, predictions.shift_kinds()
    is_evaluated = (kind == 0) | (kind % folds == fold)
    losses = {}
    with track(progress) as step:
        for number, method in enumerate(methods):
            step(f"comparing {method.name}", number, len(methods))
            options: dict[str, Any] = {}
            if method.takes("expected_shift"):
                options["expected_shift"] = expected_shift
            squares = torch.zeros(len(predictions), dtype=torch.float64)
            for k in range(folds):
                fit_rows = (fold != k) & ((kind == 0) | (kind % folds != k))
                test_rows = is_evaluated & (fold == k)
                if test_rows.any():
                    fitted = calibrator(method.name, **options)
                    fitted.fit(predictions[fit_rows], truth[fit_rows])
                    test = predictions[test_rows]
                    correct = fitted.classes(test) == truth[test_rows]
                    error = fitted.confidence(test) - correct.double()
                    squares[test_rows.cpu()] = error.square().cpu()
            losses[method.name] = squares[is_evaluated.cpu()].numpy()
    return _choose(losses, kind[is_evaluated].cpu().numpy(), expected_shift)


def _choose(
    losses: Mapping[str, np.ndarray], kind: np.ndarray, expected_shift: float
) -> MethodChoice:
    parts = _weigh_kinds(kind, expected_shift)
    means = {name: _mean(loss, parts) for name, loss in losses.items()}
    best = min(means, key=lambda name: means[name])
    shifted = [rows for rows, _ in parts[1:]]
    candidates = []
    for name, loss in losses.items():
        difference = loss - losses[best]
        candidates.append(
            Candidate(
                name,
                float(loss[parts[0][0]].mean()),
                float(np.mean([loss[rows].mean() for rows in shifted])) if shifted else None,
                means[name],
                _mean(difference, parts),
                _standard_error(difference, parts),
            )
        )
    chosen = next(one for one in candidates if one.excess <= one.error)
    return MethodChoice(chosen.method, _explain(chosen, best), tuple(candidates))


def _weigh_kinds(kind: np.ndarray, expected_shift: float) -> Parts:
    """The rows of images as they are, then of each kind of shift, each with its weight."""
    shifts = [value for value in np.unique(kind).tolist() if value]
    if not shifts:
        return [(kind == 0, 1.0)]
    return [
        (kind == 0, 1 - expected_shift),
        *((kind == value, expected_shift / len(shifts)) for value in shifts),
    ]


def _mean(loss: np.ndarray, parts: Parts) -> float:
    return float(sum(weight * loss[rows].mean() for rows, weight in parts))


def _standard_error(loss: np.ndarray, parts: Parts) -> float:
    variance = sum(weight**2 * loss[rows].var() / rows.sum() for rows, weight in parts)
    return float(np.sqrt(variance))


def _explain(chosen: Candidate, best: str) -> str:
    if chosen.method == best:
        reason = (
            "it has the smallest loss, and nothing simpler comes within one standard error of it"
        )
    else:
        reason = (
            f"it is the simplest within one standard error of {best}, the best: worse by "
            f"{100 * chosen.excess:.3f}, with an error of {100 * chosen.error:.3f}"
        )
    if chosen.method == "uncalibrated":
        return f"leave the classifier as it is: {reason}"
    return f"{chosen.method}: {reason}"
