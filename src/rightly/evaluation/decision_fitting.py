"""Decisions from samples that the calibrator has not seen: promised, cross-fitted or cheapest."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rightly.calibrators import AnyCalibrator, Calibrator
from rightly.decisions.guaranteed_thresholds import threshold
from rightly.decisions.old_costs import least_cost_threshold
from rightly.decisions.stored import Decision
from rightly.decisions.thresholds import operating_point
from rightly.predictions import Predictions
from rightly.predictions.rows import first_row_per_image, folds
from rightly.tensor_shapes import Labels

FOLDS = 5
SIMULATED = 500  # data sets, for the rate of broken promises of a cross-fitted threshold


class Outcome(NamedTuple):
    """Confidence and correctness of one row an image."""

    confidence: np.ndarray
    correct: np.ndarray


def compute_outcome(fitted: AnyCalibrator, predictions: Predictions, labels: Labels) -> Outcome:
    """Of the images as they are, one row an image."""
    rows = first_row_per_image(predictions)
    subset, truth = predictions[rows], labels[rows]
    confidence = fitted.confidence(subset).double().cpu().numpy()
    return Outcome(confidence, (fitted.classes(subset) == truth).cpu().numpy())


def promise(outcome: Outcome, accuracy: float, assurance: float, measured_on: str) -> Decision:
    """The threshold that keeps this accuracy among the accepted, with this assurance."""
    max_error = round(1 - accuracy, 12)  # 0.02 and not 0.020000000000000018
    found = threshold(*outcome, max_error=max_error, assurance=assurance)
    asked: dict[str, Any] = {
        "max_error": max_error,
        "assurance": float(assurance),
        "samples": len(outcome.correct),
        "measured_on": measured_on,
    }
    if found.value is None:
        return Decision(
            None, "guaranteed", **asked, coverage=0.0, needed=found.needed, reason=found.reason
        )
    return describe_point(
        outcome, found.value, "guaranteed", **asked, error=found.error, error_high=found.error_high
    )


def find_least_cost(outcome: Outcome, costs: Mapping[str, float], measured_on: str) -> Decision:
    """The threshold of least cost; none where reviewing all costs least."""
    asked: dict[str, Any] = dict(costs)
    found = least_cost_threshold(*outcome, **asked)
    amounts = {"gain": 0.0, **costs, "per_1000": found.cost, "low": found.low, "high": found.high}
    details: dict[str, Any] = {"costs": amounts, "measured_on": measured_on}
    if found.value is None:
        reason = "to review all costs least, as long as errors cost so much"
        return Decision(
            None, "least_cost", len(outcome.correct), coverage=0.0, reason=reason, **details
        )
    return describe_point(outcome, found.value, "least_cost", **details)


def describe_point(outcome: Outcome, value: float, kind: str, **details: Any) -> Decision:
    """The decision for a threshold, with what it accepts of these samples."""
    point = operating_point(*outcome, value).as_dict()
    samples = details.pop("samples", len(outcome.correct))
    return Decision(**(point | details), kind=kind, samples=samples)


def cross_fit(build: Callable[[], Calibrator], predictions: Predictions, labels: Labels) -> Outcome:
    """Confidence of each image by a calibrator fitted without its fold."""
    fold = folds(predictions, FOLDS)
    row = first_row_per_image(predictions).nonzero()[:, 0]
    confidence, correct = np.empty(len(row)), np.empty(len(row), dtype=bool)
    for k in range(FOLDS):
        is_here = fold[row] == k
        fitted = build().fit(predictions[fold != k], labels[fold != k])
        here = is_here.cpu().numpy()
        confidence[here], correct[here] = compute_outcome(
            fitted, predictions[row[is_here]], labels[row[is_here]]
        )
    return Outcome(confidence, correct)


def promise_cross_fitted(
    held_out: Outcome, deployed: np.ndarray, accuracy: float, assurance: float, seed: int = 0
) -> Decision:
    """The same threshold from cross-fitted confidence, and how often it would break its promise.

    `deployed` is what the calibrator that is fitted on all says of the same images. Simulated: data
    sets drawn from these images, right as often as isotonic regression of what was seen says; the
    promise is broken where the deployed confidence then accepts more errors than promised.
    """
    found = promise(held_out, accuracy, assurance, "cross-fitted calibration samples")
    if found.threshold is None:
        return replace(found, kind="approximate")
    assert found.max_error is not None
    risk = _fit_risk(held_out)
    order = np.argsort(deployed)
    ascending = deployed[order]
    above = np.cumsum(risk[order][::-1])[::-1] / np.arange(len(risk), 0, -1)
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(SIMULATED):
        rows = rng.integers(0, len(risk), len(risk))
        correct = rng.random(len(risk)) >= risk[rows]
        drawn = threshold(
            held_out.confidence[rows], correct, max_error=found.max_error, assurance=assurance
        )
        if drawn.value is not None:
            first = int(np.searchsorted(ascending, drawn.value))
            broken += first < len(above) and above[first] > found.max_error
    return replace(found, kind="approximate", broken=float(broken / SIMULATED))


def _fit_risk(outcome: Outcome) -> np.ndarray:
    """Probability that each sample is wrong, falling with confidence (isotonic regression)."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(outcome.confidence, kind="stable")
    risk = np.empty(len(order))
    wrong = (~outcome.correct[order]).astype(float)
    risk[order] = isotonic_regression(wrong, increasing=False).x
    return risk
