"""Fit a calibrator for use: with a decision to accept by, and a record of its origin."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from rightly.calibrators import Calibrator, Cascade, calibrator
from rightly.calibrators.deciding import Outcome, Wanted, compute_outcome, decide
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.checks import check_fraction
from rightly.decisions import Decision
from rightly.decisions.guarantee import find_threshold
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.evaluation.views import select_views_for_budget
from rightly.files import replace_nan
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import (
    RowHashes,
    first_row_per_image,
    folds,
    holdout_mask,
    warn_at_chance,
)
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

ITSELF = "the calibration samples themselves"
FOLDS = 5
SIMULATED = 500  # data sets, for the violation rate of a cross-fitted threshold


def fit(
    method: str,
    predictions: Predictions,
    labels: AnyArray,
    *,
    threshold: float | None = None,
    accuracy: float | None = None,
    confidence_level: float = 0.95,
    holdout: float = 0.5,
    crossfit: bool = False,
    costs: Mapping[str, float] | None = None,
    coverage: float | None = None,
    set_score: str = "lac",
    class_conditional: bool = False,
    source: Mapping[str, Any] | None = None,
    budget: float | None = None,
    choose_views: bool = True,
    adaptable: bool = True,
    **arguments: Any,
) -> Calibrator:
    """A fitted calibrator of this method, with its decision and a record of its origin.

    Accept from `threshold` upwards. Or, with an `accuracy`, from the lowest threshold at which it
    is guaranteed, with probability `confidence_level` in data like these: then the share `holdout`
    of the images is held out of the fit, and the threshold found on them (`Decision.guarantee`).
    With `crossfit` all images serve both, and the threshold is only approximate. Or, with `costs`
    of an error and of a review, and the gain of an answer, where these cost least
    (`Decision.least_cost`), on images held out alike. With none of them there is no decision; where
    an accuracy cannot be guaranteed, the decision has no threshold but a reason. With a `coverage`,
    prediction sets hold the true class of that share of images, by the score `set_score` (lac, aps,
    raps) of images held out alike, and with `class_conditional` of that share in each class
    (`rightly.prediction_sets`). `source` names the classifier; without,
    `predictions.source` does, or their fingerprint. With a `budget` in mean forward passes per
    image, views are used only inside a deferral band, and of the views those that pay are selected;
    without `choose_views` all of them stay. With `adaptable`, it learns what `adapt` needs, where
    the data allow it.
    """
    wanted = Wanted.checked(
        threshold=threshold,
        accuracy=accuracy,
        costs=costs,
        confidence_level=confidence_level,
        coverage=coverage,
        set_score=set_score,
        class_conditional=class_conditional,
    )
    _check_holdout(wanted, holdout, crossfit)
    truth = check_labels(labels, predictions)
    is_held_out = wanted.needs_held_out and not crossfit
    part, known = predictions, truth
    if is_held_out:
        rows = ~holdout_mask(predictions, holdout)
        part, known = predictions[rows], truth[rows]
    if budget is not None and choose_views and predictions.view_names:
        views = select_views_for_budget(part, known, method, budget)
        part, predictions = part.with_views(views), predictions.with_views(views)

    def build() -> Calibrator:
        return calibrator(method, budget=budget, **arguments)

    fitted = build().fit(part, known)
    if adaptable:
        with suppress(ShiftError):  # which adapting then tells
            fitted.learn_shift(part, known)
    if is_held_out:
        decision, sets = decide(fitted, predictions[~rows], truth[~rows], wanted)
        fitted.decision, fitted.sets = decision, sets
    elif crossfit:
        deployed = compute_outcome(fitted, predictions, truth).confidence
        crossfitted = _cross_fit(build, predictions, truth)
        assert accuracy is not None
        fitted.decision = _approximate(crossfitted, deployed, accuracy, confidence_level)
    elif wanted.has_decision:
        outcome = compute_outcome(fitted, predictions, truth)
        fitted.decision = wanted.make_decision(outcome, ITSELF)
    # A sample of all rows, held out or not, so that test sets with the same rows are refused.
    hashes = RowHashes.compute(predictions).to_record()
    fitted.record = {**_record(fitted, part, known, source), "calibration_rows": hashes}
    return fitted


def _check_holdout(wanted: Wanted, holdout: float, crossfit: bool) -> None:
    check_fraction("holdout", holdout)
    if crossfit and wanted.accuracy is None:
        raise ValueError("crossfit must come with an accuracy: pass accuracy= too")
    if crossfit and wanted.coverage is not None:
        raise ValueError("crossfit and coverage exclude each other: coverage needs held-out rows")


def _cross_fit(
    build: Callable[[], Calibrator], predictions: Predictions, labels: Labels
) -> Outcome:
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


def _approximate(
    crossfitted: Outcome,
    deployed: np.ndarray,
    accuracy: float,
    confidence_level: float,
    seed: int = 0,
) -> Decision:
    """The threshold of cross-fitted confidence, and how often it violates its target.

    `deployed` is the confidence of the same images by the calibrator fitted on all. Simulated: data
    sets drawn from these images, correct with the probability of an isotonic regression; the target
    is violated where the deployed confidence then accepts more than `max_error` errors.
    """
    found = Decision.guarantee(
        *crossfitted,
        accuracy=accuracy,
        confidence_level=confidence_level,
        measured_on="cross-fitted calibration samples",
    )
    found = replace(found, kind="approximate", error_bound=None)
    if found.threshold is None:
        return found
    assert found.max_error is not None
    risk = _fit_risk(crossfitted)
    order = np.argsort(deployed)
    ascending = deployed[order]
    above = np.cumsum(risk[order][::-1])[::-1] / np.arange(len(risk), 0, -1)
    rng, violations = np.random.default_rng(seed), 0
    for _ in range(SIMULATED):
        rows = rng.integers(0, len(risk), len(risk))
        correct = rng.random(len(risk)) >= risk[rows]
        confidence = crossfitted.confidence[rows]
        drawn = find_threshold(confidence, correct, found.max_error, 1 - confidence_level)
        if drawn.threshold is not None:
            first = int(np.searchsorted(ascending, drawn.threshold))
            violations += first < len(above) and above[first] > found.max_error
    return replace(found, violation_rate=float(violations / SIMULATED))


def _fit_risk(outcome: Outcome) -> np.ndarray:
    """Probability that each sample is wrong, falling with confidence (isotonic regression)."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(outcome.confidence, kind="stable")
    risk = np.empty(len(order))
    wrong = (~outcome.correct[order]).astype(float)
    risk[order] = isotonic_regression(wrong, increasing=False).x
    return risk


def _record(
    fitted: Calibrator,
    predictions: Predictions,
    labels: Labels,
    source: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The classifier, the calibration data, metrics before and after, and cost."""
    rows = predictions.unshifted()
    source = predictions.source.classifier if source is None else source
    if source is None and predictions.fingerprint is not None:
        source = {"name": None, "fingerprint": predictions.fingerprint, "preprocessing": None}
    unshifted, truth = predictions[rows], labels[rows]
    correct = (fitted.classes(unshifted) == truth).cpu().numpy()
    warn_at_chance("the calibration data", unshifted, truth)
    deferred = 1.0
    if isinstance(fitted, Cascade):
        deferred = float(fitted.needs_views(unshifted).double().mean())
    return {
        "classifier": None if source is None else dict(source),
        "calibration": {
            "samples": len(unshifted),
            "shifted_samples": int((~rows).sum()) if fitted.uses_shifted_rows else 0,
            "accuracy": float(correct.mean()),
            "before": replace_nan(measure(None, unshifted, truth, TABLE_METRICS)),
            "after": replace_nan(measure(fitted, unshifted, truth, TABLE_METRICS)),
            "measured_on": ITSELF,
        },
        "passes": 1 + deferred * len(fitted.view_names),
    }
