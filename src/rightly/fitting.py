"""Fits a calibrator for use: with a threshold to accept by, and a record of its origin."""

from collections.abc import Mapping
from typing import Any

from rightly.calibrators import Calibrator, Cascade, FittedCalibrator, calibrator
from rightly.decisions import check_share, operating_point, threshold_for_accuracy
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.evaluation.view_cost import select_views_for_budget
from rightly.predictions import Predictions, check_labels
from rightly.predictions.accuracy import warn_at_chance
from rightly.predictions.bounded_json import replace_nan
from rightly.predictions.row_hashes import RowHashes
from rightly.shapes import AnyArray


def fit(
    method: str,
    predictions: Predictions,
    labels: AnyArray,
    *,
    threshold: float | None = None,
    accuracy: float | None = None,
    source: Mapping[str, Any] | None = None,
    budget: float | None = None,
    choose_views: bool = True,
    **arguments: Any,
) -> FittedCalibrator:
    """A fitted calibrator of this method, with its threshold and a record of its origin.

    Accept from `threshold` upwards, or from the lowest one whose accepted calibration samples are
    right with this `accuracy`; with neither, there is no threshold. `source` names the classifier,
    as `rightly.predictions.read_source` reads it from what collect wrote; without, only the
    fingerprint in the predictions is recorded. With a `budget` in mean
    forward passes per image, views are used only inside a deferral band, and of the views those
    that pay are selected; without `choose_views` all of them stay.
    """
    if threshold is not None and accuracy is not None:
        raise ValueError("threshold and accuracy exclude each other: give one of them")
    for name, share in (("threshold", threshold), ("accuracy", accuracy)):
        if share is not None:
            check_share(name, share)
    built = calibrator(method, budget=budget, **arguments)
    if budget is not None and choose_views and predictions.view_names:
        views = select_views_for_budget(predictions, labels, method, budget)
        predictions = predictions.with_views(views)
    fitted = built.fit(predictions, labels)
    return _record(fitted, predictions, labels, threshold, accuracy, source)


def _record(
    fitted: Calibrator,
    predictions: Predictions,
    labels: AnyArray,
    threshold: float | None,
    accuracy: float | None,
    source: Mapping[str, Any] | None,
) -> FittedCalibrator:
    """Adds the threshold, and a record of calibration data, metrics before and after, and cost."""
    rows = predictions.unshifted()
    if source is None and predictions.fingerprint is not None:
        source = {"name": None, "fingerprint": predictions.fingerprint, "preprocessing": None}
    unshifted, truth = predictions[rows], check_labels(labels, predictions)[rows]
    correct = (fitted.classes(unshifted) == truth).cpu().numpy()
    warn_at_chance("the calibration data", unshifted, truth)
    record: dict[str, Any] = {
        "classifier": None if source is None else dict(source),
        "calibration": {
            "samples": len(unshifted),
            "shifted_samples": int((~rows).sum()) if fitted.uses_shifted_rows else 0,
            "accuracy": float(correct.mean()),
            "before": replace_nan(measure(None, unshifted, truth, TABLE_METRICS)),
            "after": replace_nan(measure(fitted, unshifted, truth, TABLE_METRICS)),
            "measured_on": "the calibration samples themselves",
        },
        # A sample, so that test sets with the same rows are refused.
        "calibration_rows": RowHashes.compute(predictions).to_record(),
        "threshold": None,
    }
    if accuracy is not None or threshold is not None:
        confidence = fitted.confidence(unshifted).cpu().numpy()
        asked = {"threshold": threshold} if accuracy is None else {"accuracy": accuracy}
        if accuracy is not None:
            threshold = threshold_for_accuracy(confidence, correct, accuracy)
        assert threshold is not None
        point = operating_point(confidence, correct, threshold)
        record["threshold"] = {"asked": asked, **point.as_dict()}
    deferred = 1.0
    if isinstance(fitted, Cascade):
        deferred = float(fitted.needs_views(unshifted).double().mean())
    record["passes"] = 1 + deferred * len(fitted.view_names)
    return FittedCalibrator(fitted, None if threshold is None else float(threshold), record)
