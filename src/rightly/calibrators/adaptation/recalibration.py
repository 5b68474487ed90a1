"""Level and slope of the confidence, corrected by a few labels from where a calibrator is used.

A sample's score s is the log-odds of its confidence. With labels of n new samples, whose mean score
is m (weighted by p (1 - p), by what they tell about the level), the score becomes

    s + level + (slope - 1) (s - m)

where level and slope are the most probable ones: logistic regression of correctness, with normal
priors around no change (level 0, slope 1). So few labels change little and many decide alone. The
slope is positive: neither the predicted class nor the ranking changes.
"""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor, nn

from rightly.calibrators.adaptation.context import score
from rightly.calibrators.checks import bound_confidence
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import RowHashes
from rightly.shapes import AnyArray
from rightly.tensor_shapes import PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

# Standard deviations of the priors: what real shifts ask for, by benchmarks/own/recalibrating.py
# on three classifiers for developing (root mean square of the level, and of the slope less 1).
LEVEL_SD, SLOPE_SD = 0.4, 0.2
LEAST_SLOPE = 0.1
NO_CONTEXT = "it was recalibrated on labels; adapt the one before, or fit on the new samples"


class Recalibration(nn.Module):
    """The corrected score is bias + slope * s."""

    stores = {"bias": Stored(), "slope": Stored(low=POSITIVE)}

    bias: Tensor
    slope: Tensor

    @classmethod
    def of(cls, bias: float, slope: float) -> "Recalibration":
        made = cls()
        for name, value in (("bias", bias), ("slope", slope)):
            made.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        return made

    @property
    def value(self) -> Tensor:
        """In the place of a context: it is always applied."""
        return torch.ones_like(self.slope)

    def adjust(self, confidence: PerSample, context: Tensor | None = None) -> PerSample:
        """The corrected confidence; there is none at a context."""
        # Not bounded as in the fit, where ties would change the ranking.
        s = torch.logit(confidence.double(), eps=torch.finfo(torch.float64).eps / 2)
        return (self.bias + self.slope * s).sigmoid()


@torch.no_grad()
def recalibrate(
    calibrator: "Calibrator", predictions: Predictions, labels: AnyArray
) -> "Calibrator":
    """A copy of the calibrator, corrected by these labels and by no earlier batch or labels."""
    calibrator.check(predictions)
    truth, rows = check_labels(labels, predictions), predictions.unshifted()
    if not bool(rows.any()):
        raise ValueError(
            "shift must be 0 for some rows to recalibrate on, but every row is shifted: give "
            "images as they come where the calibrator is used"
        )
    images = predictions[rows]
    confidence = bound_confidence(calibrator.compute_confidence(images), images)
    correct = calibrator.compute_classes(images) == truth[rows]
    bias, slope = fit_level_and_slope(score(confidence).cpu().numpy(), correct.cpu().numpy())
    corrected = copy.deepcopy(calibrator)
    corrected.context = corrected.calibration_rows = None
    corrected.no_context = NO_CONTEXT
    corrected.recalibration = Recalibration.of(bias, slope).to(predictions.logits.device)
    return corrected


def record_labels(
    record: Mapping[str, Any],
    calibrator: "Calibrator",
    predictions: Predictions,
    labels: AnyArray,
) -> dict[str, Any]:
    """The record of a calibrator, with what it was recalibrated on."""
    assert calibrator.recalibration is not None
    rows = predictions.unshifted()
    truth = check_labels(labels, predictions)[rows]
    hashes = RowHashes.compute(predictions)
    known = record.get("calibration_rows")
    if known is not None:
        hashes = RowHashes.from_record(known).merge(hashes)
    kept = {name: value for name, value in record.items() if name != "adapted"}
    return kept | {
        # So that test sets with the new rows are refused too.
        "calibration_rows": hashes.to_record(),
        "recalibrated": {
            "samples": len(truth),
            "accuracy": float((calibrator.classes(predictions[rows]) == truth).double().mean()),
            "bias": float(calibrator.recalibration.bias),
            "slope": float(calibrator.recalibration.slope),
        },
    }


def fit_level_and_slope(
    scores: np.ndarray,
    correct: np.ndarray,
    level_sd: float = LEVEL_SD,
    slope_sd: float = SLOPE_SD,
) -> tuple[float, float]:
    """Bias and slope of the most probable correction of these scores."""
    y, p = correct.astype(float), expit(scores)
    # Where the samples tell most about the level, so that it does not depend on the slope.
    centre = float((p * (1 - p)) @ scores / (p * (1 - p)).sum())
    centred = scores - centre

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        level, tilt = values
        t = scores + level + tilt * centred
        error = expit(t) - y
        prior = (level / level_sd) ** 2 + (tilt / slope_sd) ** 2
        gradient = [
            error.sum() + level / level_sd**2,
            error @ centred + tilt / slope_sd**2,
        ]
        return float((np.logaddexp(0, t) - y * t).sum() + prior / 2), np.array(gradient)

    solved = minimize(
        loss,
        np.zeros(2),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), (LEAST_SLOPE - 1, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )
    level, tilt = solved.x.tolist()
    return level - tilt * centre, 1 + tilt
