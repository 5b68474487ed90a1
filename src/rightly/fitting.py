"""Fits a calibrator for use: with a threshold to accept by, and a record of its origin."""

from collections.abc import Mapping
from typing import Any

from rightly.calibrators import Calibrator, Cascade, ConformalSets, FittedCalibrator, calibrator
from rightly.calibrators.conformal.scores import check_score
from rightly.checks import check_fraction, check_share
from rightly.decisions.costs import check_costs
from rightly.evaluation.decision_fitting import (
    compute_outcome,
    cross_fit,
    describe_point,
    find_least_cost,
    promise,
    promise_cross_fitted,
)
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.evaluation.views import select_views_for_budget
from rightly.files import replace_nan
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import RowHashes, holdout_mask, warn_at_chance
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

ITSELF = "the calibration samples themselves"
HELD_OUT = "calibration samples held out of the fit"


def fit(
    method: str,
    predictions: Predictions,
    labels: AnyArray,
    *,
    threshold: float | None = None,
    accuracy: float | None = None,
    assurance: float = 0.95,
    threshold_share: float = 0.5,
    crossfit: bool = False,
    costs: Mapping[str, float] | None = None,
    coverage: float | None = None,
    set_score: str = "lac",
    class_conditional: bool = False,
    source: Mapping[str, Any] | None = None,
    budget: float | None = None,
    choose_views: bool = True,
    **arguments: Any,
) -> FittedCalibrator:
    """A fitted calibrator of this method, with its threshold and a record of its origin.

    Accept from `threshold` upwards. Or, with an `accuracy`, from the lowest one that is sure to be
    right so often, with probability `assurance` in data like these: then this share of the images
    is held out of the fit, and the threshold found on them (`rightly.threshold`). With `crossfit`
    all images serve both, and the threshold is only approximate. Or, with `costs` of an error and
    of a review, and the gain of an answer, where these cost least (`rightly.least_cost_threshold`),
    on images held out alike. With none of them, or where no threshold can be promised, there is
    none. With a `coverage`, prediction sets are to hold the true class of so many images, by the
    score `set_score` (lac, aps, raps) of images held out alike, and with `class_conditional` of so
    many in each class (`rightly.prediction_sets`). `source` names the classifier; without,
    `predictions.source` does, or their fingerprint. With a `budget` in mean forward passes per
    image, views are used only inside a deferral band, and of the views those that pay are selected;
    without `choose_views` all of them stay.
    """
    _check_decision(threshold, accuracy, assurance, threshold_share, crossfit, costs)
    _check_sets(coverage, set_score, class_conditional, crossfit)
    truth = check_labels(labels, predictions)
    is_held_out = not crossfit and any(x is not None for x in (accuracy, costs, coverage))
    part, known = predictions, truth
    if is_held_out:
        rows = ~holdout_mask(predictions, threshold_share)
        part, known = predictions[rows], truth[rows]
    if budget is not None and choose_views and predictions.view_names:
        views = select_views_for_budget(part, known, method, budget)
        part, predictions = part.with_views(views), predictions.with_views(views)

    def build() -> Calibrator:
        return calibrator(method, budget=budget, **arguments)

    fitted = build().fit(part, known)
    outcome = decision = sets = None
    if is_held_out:
        held_out, answers = predictions[~rows], truth[~rows]
        outcome = compute_outcome(fitted, held_out, answers)
    if coverage is not None:
        sets = ConformalSets.fit(
            fitted,
            held_out,
            answers,
            coverage=coverage,
            score=set_score,
            class_conditional=class_conditional,
        )
    if costs is not None:
        assert outcome is not None
        decision = find_least_cost(outcome, costs, HELD_OUT).to_record(costs=dict(costs))
    elif accuracy is not None:
        asked = {"accuracy": accuracy, "assurance": assurance}
        if outcome is not None:
            found = promise(outcome, accuracy, assurance, HELD_OUT)
        else:
            deployed = compute_outcome(fitted, predictions, truth).confidence
            folds = cross_fit(build, predictions, truth)
            found = promise_cross_fitted(folds, deployed, accuracy, assurance)
        decision = found.to_record(**asked)
    elif threshold is not None:
        own = outcome or compute_outcome(fitted, predictions, truth)
        measured_on = ITSELF if outcome is None else HELD_OUT
        point = describe_point(own, threshold, "chosen", measured_on=measured_on)
        decision = point.to_record(threshold=threshold)
    record = _record(fitted, part, known, source)
    # A sample of all rows, held out or not, so that test sets with the same rows are refused.
    record["calibration_rows"] = RowHashes.compute(predictions).to_record()
    record["threshold"] = decision
    value = None if decision is None else decision["threshold"]
    return FittedCalibrator(fitted, value, record, sets)


def _check_decision(
    threshold: float | None,
    accuracy: float | None,
    assurance: float,
    threshold_share: float,
    crossfit: bool,
    costs: Mapping[str, float] | None,
) -> None:
    given = {"threshold": threshold, "accuracy": accuracy, "costs": costs}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"{' and '.join(names)} exclude each other: give one of them")
    if threshold is not None:
        check_share("threshold", threshold)
    if accuracy is not None:
        check_fraction("accuracy", accuracy)
    check_fraction("assurance", assurance)
    check_fraction("threshold_share", threshold_share)
    if crossfit and accuracy is None:
        raise ValueError("crossfit must come with an accuracy to promise: pass accuracy= too")
    if costs is not None:
        unknown = sorted(set(costs) - {"error", "review", "gain"})
        if unknown or not {"error", "review"} <= set(costs):
            raise ValueError(
                f"costs must name error and review, and may name gain, got {sorted(costs)}: pass "
                "for instance {'error': 50, 'review': 1}"
            )
        check_costs(**costs)


def _check_sets(
    coverage: float | None, set_score: str, class_conditional: bool, crossfit: bool
) -> None:
    check_score(set_score, "set_score")
    if coverage is None:
        if class_conditional or set_score != "lac":
            raise ValueError(
                "set_score and class_conditional are for prediction sets: pass coverage= too, for "
                "instance 0.9"
            )
        return
    check_fraction("coverage", coverage)
    if crossfit:
        raise ValueError(
            "crossfit holds no images out, and coverage needs some: leave one of them away"
        )


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
