"""`rightly.prediction_sets`: which classes are in the set of each prediction."""

import torch

from rightly.calibrators.conformal.sets import Sets
from rightly.calibrators.fitted import AnyCalibrator, as_fitted
from rightly.predictions import Predictions


@torch.no_grad()
def prediction_sets(
    fitted: AnyCalibrator,
    predictions: Predictions,
    *,
    coverage: float | None = None,
    score: str | None = None,
    class_conditional: bool | None = None,
) -> Sets:
    """Which classes are in the prediction set of each sample, by split conformal prediction.

    Of images like those that `rightly.fit(..., coverage=0.9)` held out, the sets hold the true
    class of at least so many; after `adapt` no coverage is claimed. A set may be empty. `coverage`,
    `score` (lac, aps, or raps where it was fitted for that) and `class_conditional` are as fitted,
    unless given.
    """
    calibrator = as_fitted(fitted)
    sets = calibrator.sets
    if sets is None:
        raise ValueError(
            f"{calibrator.title} has no held-out scores to make prediction sets by: fit with "
            "coverage= (--coverage on the command line), or give it images that it was not fitted "
            "on, by hold_out(predictions, labels, coverage=0.9)"
        )
    score = sets.score if score is None else score
    limits = sets.find_thresholds(
        sets.coverage if coverage is None else coverage,
        score,
        sets.class_conditional if class_conditional is None else class_conditional,
    )
    probabilities = calibrator.probabilities(predictions)
    return sets.contains(probabilities, predictions.logits, limits.values, score)
