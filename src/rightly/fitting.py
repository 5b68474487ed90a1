"""Fit a calibrator for use: with a decision to accept by, and a record of its origin."""

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from rightly.calibrators import CALIBRATORS, Calibrator, Cascade, calibrator
from rightly.calibrators.decision_fitting import DecisionOptions, Outcome, compute_outcome, decide
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.checks import check_fraction
from rightly.decisions import Decision
from rightly.decisions.guarantee import find_threshold
from rightly.evaluation.data_sets import LabelledSet
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.evaluation.selection import EXPECTED_SHIFT, select_method
from rightly.evaluation.views import select_views_for_budget, test_views
from rightly.files import replace_nan
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import (
    RowHashes,
    first_row_per_image,
    folds,
    holdout_mask,
    warn_at_chance,
)
from rightly.progress import Progress, track
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

ITSELF = "the calibration samples themselves"
FOLDS = 5
MIN_TESTED = 60  # samples, to test what views gain
FAR_ABOVE = 0.5  # share of the errors allowed: a threshold with fewer lies far above its target
SIMULATED = 500  # data sets, for the violation rate of a cross-fitted threshold


def fit(
    predictions: Predictions,
    labels: AnyArray,
    method: str | Calibrator = "correctness_logistic",
    *,
    threshold: float | None = None,
    accuracy: float | None = None,
    costs: Mapping[str, float] | None = None,
    confidence_level: float = 0.95,
    coverage: float | None = None,
    set_score: str = "lac",
    class_conditional: bool = False,
    holdout: float = 0.5,
    crossfit: bool = False,
    budget: float | None = None,
    select_views: bool = True,
    adaptable: bool = True,
    seed: int = 0,
    progress: Progress | bool = False,
    **arguments: Any,
) -> Calibrator:
    """Fit a calibrator for use: with a decision, prediction sets, and what adapting needs.

    `method` is a name with its `arguments`, an unfitted calibrator, of which a copy is fitted, or
    "auto": the one that cross-validation on the calibration data selects. Accept from `threshold`
    upwards; or from the lowest threshold at which `accuracy` is guaranteed at `confidence_level`
    (`Decision.guarantee`); or where `costs` of error, review and gain are least. Where an accuracy
    cannot be guaranteed, the decision has no threshold but `needed` and `reason`, with a warning.
    Prediction sets hold the true class with probability `coverage` (`Calibrator.decide`).

    Thresholds with an accuracy or costs, and sets, come from the share `holdout` of the images,
    held out of the fit; with `crossfit` all images serve both, and the threshold is approximate.
    With a `budget` in mean forward passes per image, views are used only inside a deferral band.
    With `select_views`, views that gain nothing detectable on held-out rows are left out, and with
    a budget only those that pay are kept. With `adaptable`, it calls `learn_shift`, where the data
    allow it. `record` says what was fitted on what, and in `notes` what would be better.
    """
    wanted = DecisionOptions.validate(
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
    seen = predictions, truth
    if is_held_out:  # from the fit, the selection of method and views, and learning of shifts
        rows = ~holdout_mask(predictions, holdout)
        seen = predictions[rows], truth[rows]
    record: dict[str, Any] = {"notes": []}
    with track(progress) as step:
        if method == "auto":
            method, arguments = _select_method(seen, arguments, record, step)
        build = _make_builder(method, budget, seed, arguments)
        views = _select_views(seen, build(), budget, record) if select_views else None
        part, used = (_keep_views(each, views) for each in (seen[0], predictions))
        fitted = build()
        step(f"fitting {fitted.title}", 0, 2)
        fitted.fit(part, seen[1])
        step("learning how confidence changes under shift", 1, 2)
        if adaptable:
            with suppress(ShiftError):  # which adapting then raises
                fitted.learn_shift(*seen)
    if is_held_out:
        fitted.decision, fitted.sets = decide(fitted, used[~rows], truth[~rows], wanted)
    elif crossfit:
        deployed = compute_outcome(fitted, used, truth).confidence
        assert accuracy is not None
        crossfitted = _cross_fit(build, used, truth)
        fitted.decision = _approximate(crossfitted, deployed, accuracy, confidence_level)
    elif wanted.has_decision:
        fitted.decision = wanted.make_decision(compute_outcome(fitted, used, truth), ITSELF)
    _note_decision(fitted.decision, accuracy, crossfit, record)
    # A sample of all rows, held out or not, so that test sets with the same rows are refused.
    record["calibration_rows"] = RowHashes.compute(predictions).to_record()
    fitted.record = {**_record(fitted, part, seen[1]), **record}
    return fitted


def _keep_views(predictions: Predictions, views: tuple[str, ...] | None) -> Predictions:
    """These views only; all of them for None."""
    if views is None or views == predictions.view_names:
        return predictions
    return predictions.with_views(views) if views else predictions.without_views()


def _select_method(
    seen: LabelledSet, arguments: dict[str, Any], record: dict[str, Any], progress: Progress
) -> tuple[str, dict[str, Any]]:
    """The method that cross-validation selects, with the arguments that it takes."""
    shift = arguments.get("expected_shift", EXPECTED_SHIFT)
    choice = select_method(*seen, expected_shift=shift, progress=progress)
    record["selection"] = replace_nan(asdict(choice))
    taken = CALIBRATORS.find(choice.method).takes
    kept = {name: x for name, x in arguments.items() if name != "expected_shift" or taken(name)}
    return choice.method, kept


def _make_builder(
    method: str | Calibrator, budget: float | None, seed: int, arguments: dict[str, Any]
) -> Callable[[], Calibrator]:
    """What builds the calibrator unfitted, as often as it is needed."""
    if isinstance(method, Calibrator):
        if method.is_fitted or arguments or budget is not None:
            raise ValueError(
                "method must be an unfitted calibrator without further arguments or budget, got "
                f"{method!r}: build it with all of them by rightly.calibrator(name, ...)"
            )
        return partial(copy.deepcopy, method)
    options = {"seed": seed} if CALIBRATORS.find(method).takes("seed") else {}
    return lambda: calibrator(method, budget=budget, **{**options, **arguments})


def _select_views(
    seen: LabelledSet, built: Calibrator, budget: float | None, record: dict[str, Any]
) -> tuple[str, ...] | None:
    """Views that pay within a budget, none if they gain nothing detectable; None for all."""
    names = seen[0].view_names
    if names and budget is not None:
        assert built.method is not None
        return select_views_for_budget(*seen, built.method, budget)
    if not names or "view_logits" not in built.uses or len(seen[1]) < MIN_TESTED:
        return None
    tested = test_views(*seen, built)
    record["views"] = tested.describe()
    if tested.is_detectable:
        return None
    record["notes"].append(tested.describe())
    return ()


def _note_decision(
    decision: Decision | None, accuracy: float | None, crossfit: bool, record: dict[str, Any]
) -> None:
    """Name a remedy where a threshold lies far above its target; warn where there is none."""
    if decision is None or accuracy is None:
        return
    if decision.threshold is None:
        warnings.warn(
            f"accuracy {accuracy:g} cannot be guaranteed, {decision.reason}: there is no threshold",
            UserWarning,
            stacklevel=3,
        )
        return
    assert decision.accuracy is not None and decision.coverage is not None
    if decision.coverage < 1 and 1 - decision.accuracy < FAR_ABOVE * (1 - accuracy):
        remedy = "more images" if crossfit else "more images or crossfit"
        record["notes"].append(
            f"the threshold lies far above its target: {decision.accuracy:.1%} of the accepted are "
            f"correct where {accuracy:.1%} is asked for; {remedy} would accept more"
        )


def _check_holdout(wanted: DecisionOptions, holdout: float, crossfit: bool) -> None:
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


def _record(fitted: Calibrator, predictions: Predictions, labels: Labels) -> dict[str, Any]:
    """The classifier, the calibration data, metrics before and after, and cost."""
    rows = predictions.unshifted()
    source = predictions.source.classifier
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
