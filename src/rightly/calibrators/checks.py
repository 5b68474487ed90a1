"""What must hold for the inputs and answers of every calibrator."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rightly.calibrators.solvers.temperature import keep_class
from rightly.predictions import Predictions
from rightly.predictions.masking import exclude_masked, settle_confidence
from rightly.tensor_shapes import Labels, Logits, PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator


def check_inputs(predictions: object, needs: Iterable[str], title: str) -> None:
    """Refuses what is not Predictions, or lacks a field that the calibrator needs."""
    if not isinstance(predictions, Predictions):
        raise TypeError(
            f"predictions must be a rightly.Predictions, got {type(predictions).__name__}: "
            "wrap logits as rightly.Predictions(logits)"
        )
    for need in needs:
        if getattr(predictions, need) is None:
            raise ValueError(
                f"{title} needs predictions with {need}, but these have none: "
                f"collect them, or choose a method that does not need {need}"
            )


def check_class_count(predictions: Predictions, count: int | None, title: str) -> None:
    """Refuses predictions of another number of classes than the calibrator is for."""
    if count is not None and predictions.class_count != count:
        raise ValueError(
            f"{title} needs predictions of {count} classes, but these have "
            f"{predictions.class_count}: choose a method for any number, such as "
            "temperature_scaling"
        )


def check_like_fitted(calibrator: "Calibrator", predictions: Predictions) -> None:
    """Refuses predictions with other classes, views or features than it was fitted on."""
    title = calibrator.title
    check_inputs(predictions, calibrator.needs, title)
    if predictions.class_count != calibrator.class_count:
        raise ValueError(
            f"predictions must have {calibrator.class_count} classes like those {title} was "
            f"fitted on, got {predictions.class_count}"
        )
    names = calibrator.view_names
    if names and predictions.view_names != names:
        raise ValueError(
            f"predictions must have the views {list(names)} in this order, like those {title} was "
            f"fitted on, got {list(predictions.view_names)}: choose them with "
            "predictions.with_views(...)"
        )
    if calibrator.feature_count and predictions.features is not None:
        count = predictions.features.shape[1]
        if count != calibrator.feature_count:
            raise ValueError(
                f"features must have {calibrator.feature_count} columns like those {title} was "
                f"fitted on, got {count}"
            )


def check_answer(title: str, name: str, values: Tensor) -> Tensor:
    """What a calibrator gives, or an error: an answer that is not a number is none."""
    if not torch.isfinite(values.sum()):
        rows = (~torch.isfinite(values)).reshape(len(values), -1).any(1)
        if rows.any():
            raise ValueError(
                f"{title} has no {name} for {int(rows.sum())} of {len(values)} predictions, the "
                f"first of them row {int(rows.nonzero()[0])}: it was fitted on values that "
                "overflow, or these do; look at their logits, views and features, and fit again"
            )
    return values


def bound_confidence(confidence: PerSample, predictions: Predictions) -> PerSample:
    """In 0..1, and 1 where all other classes are masked."""
    confidence = confidence.double().clamp(0, 1)
    if predictions.has_masked:
        confidence = settle_confidence(confidence, predictions.logits)
    return confidence


def settle_probabilities(
    probabilities: Logits, classes: Labels, predictions: Predictions
) -> Logits:
    """0 for masked classes, and the predicted class the largest."""
    if predictions.has_masked and not torch.compiler.is_exporting():  # a graph gives 0 already
        probabilities = exclude_masked(probabilities, predictions.logits)
    return keep_class(probabilities, classes)


def warn_if_one_sided(correct: Tensor, title: str) -> None:
    """Says what a fit can learn from samples that are all right, or all wrong."""
    if bool(correct.all()) or not bool(correct.any()):
        side, limit = ("right", "1") if bool(correct.all()) else ("wrong", "its lowest value")
        warnings.warn(
            f"all {len(correct)} calibration samples are predicted {side}: {title} can only learn "
            f"to push confidence towards {limit}; calibrate on data with both",
            UserWarning,
            stacklevel=3,
        )


def warn_if_classes_missing(
    is_missing: Tensor, class_names: Sequence[str] | None, title: str, shown: int = 5
) -> None:
    """Says which classes no calibration sample is of, and what the fit then does."""
    missing = is_missing.nonzero().squeeze(-1).tolist()
    if not missing:
        return
    names = [repr(class_names[i]) if class_names else str(i) for i in missing[:shown]]
    more = f" and {len(missing) - shown:,} more" if len(missing) > shown else ""
    warnings.warn(
        f"{len(missing):,} of {len(is_missing):,} classes have no calibration sample: "
        f"{', '.join(names)}{more}; {title} treats predictions of them like those of an average "
        "class; calibrate on data with all classes",
        UserWarning,
        stacklevel=5,
    )
