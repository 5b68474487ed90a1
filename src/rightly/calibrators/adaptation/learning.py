"""Learning what contexts mean, from scores that are cross-fitted by image.

Confidence under a shift is too high by an amount that grows as the scores of the batch fall, and
faster the farther they are: three weights of that (see `context`) and the reference point are
fitted by logistic regression over pseudo-batches with known labels. Leaving out one kind of shift
at a time tells how far the expected accuracy of a kind that was never seen may be off.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit

from rightly.calibrators.adaptation.context import Context, NoContextError, score
from rightly.calibrators.adaptation.drift_reference import (
    learn_drift_reference,
    measure_agreement,
)
from rightly.calibrators.adaptation.pseudo_batches import (
    PseudoBatch,
    ScoredRows,
    make_pseudo_batches,
)
from rightly.calibrators.pseudo_shift import pseudo_shifted
from rightly.calibrators.solvers.execution import single_threaded
from rightly.predictions import Predictions
from rightly.predictions.rows import stratified_split
from rightly.tensor_shapes import Labels, PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

CLASS_SHARE = 0.5  # of the class mean in the reference; the rest is the mean of all
CLASS_PRIOR = 20.0  # samples' worth by which a class mean is shrunk to the mean of all
LEAST, LEAST_OF_EACH = 60, 10  # images to learn from; right and wrong ones among them
REACH_OF_VIEWS = 3.0  # contexts allowed, in units of the lowest one that was learned from
REACH_OF_SHIFTS = 1.5  # the same where real shifts were learned from
HIGHEST = 1.0  # weight of the context: a small one moves a score at most as far as it was moved
STEEPEST = 0.9  # share of the slope over the score that a context may take away


class Weights(NamedTuple):
    """Of the context in level, slope and curve; and the mean residual that counts as none."""

    level: float
    slope: float
    curve: float
    origin: float


def learn_context(
    fitted: "Calibrator", unfitted: "Calibrator", predictions: Predictions, labels: Labels
) -> Context:
    """What contexts mean to a fitted calibrator, of which `unfitted` is a copy."""
    groups, level_of_halves = cross_fit_scores(unfitted, predictions, labels)
    unshifted = groups.pop("")
    # Fits on halves may lie higher or lower than the fit on all: both are measured on the rows
    # that they were fitted on, where each is as far too high as the other.
    moved = _mean_score(fitted, predictions[predictions.unshifted()]) - level_of_halves
    if not groups:
        lacking = "features of views" if "features" in unfitted.needs else "views"
        raise NoContextError(
            f"the calibration data have no shifted rows, and no {lacking} to stand for them: "
            "collect shifted images too (rightly collect --shifts standard)"
        )
    class_count = predictions.class_count
    batches = make_pseudo_batches(unshifted, groups, class_count)
    reference = _find_reference(unshifted, class_count)
    means = {id(batch): _mean_residual(batch, reference) for batch in batches}
    has_shifts = bool(predictions.shift_kinds().any())
    reach = REACH_OF_SHIFTS if has_shifts else REACH_OF_VIEWS
    values = np.array(list(means.values()))
    low, high = reach * min(float(values.min()), 0.0), float(values.max())
    # Views in the place of images tell how the level moves with the context, but not the slope.
    steepest = STEEPEST / max(high - low, 1e-6) if has_shifts and len(groups) > 1 else 0.0

    def fit(chosen: Sequence[PseudoBatch]) -> Weights:
        return _fit_weights(chosen, [means[id(batch)] for batch in chosen], steepest)

    with single_threaded():
        weights = fit(batches)
        misses, kind_contexts = [], []
        for kind in groups if len(groups) > 1 else ():
            without = fit([batch for batch in batches if batch.kind != kind])
            (held_out,) = (batch for batch in batches if batch.kind == kind and batch.is_pure)
            adapted = _adapt(held_out.rows.score, means[id(held_out)], without)
            kind_contexts.append(means[id(held_out)] - weights.origin)
            misses.append(float(expit(adapted).mean() - held_out.rows.correct.mean()))
    spread = float(np.mean((values - weights.origin) ** 2))
    noise = float((unshifted.score - reference[unshifted.predicted]).var()) / max(spread, 1e-6)
    learned = Context.of(
        reference=torch.from_numpy(reference + weights.origin + moved),
        weights=torch.tensor([weights.level, weights.slope, weights.curve]),
        limits=torch.tensor([low, high]) - weights.origin,
        noise=torch.tensor(noise),
        misses=torch.tensor(misses),
        kind_contexts=torch.tensor(kind_contexts),
    )
    at_level = replace(unshifted, score=unshifted.score + moved)
    learned.drift = learn_drift_reference(at_level, class_count)
    return learned


def cross_fit_scores(
    calibrator: "Calibrator", predictions: Predictions, labels: Labels
) -> tuple[dict[str, ScoredRows], float]:
    """Scores of unshifted rows (""), of each kind of shift and of each view in an image's place.

    Each half of the images gets those of a calibrator fitted on the other half; the mean score of
    unshifted rows that these were fitted on comes last.
    """
    correct, image = predictions.classes == labels, predictions.image_ranks()
    unshifted = predictions.unshifted()
    counts = [int(side[unshifted].sum()) for side in (correct, ~correct)]
    if sum(counts) < LEAST or min(counts) < LEAST_OF_EACH:
        raise NoContextError(
            f"{sum(counts)} unshifted calibration images, {counts[0]} right and {counts[1]} wrong, "
            f"are too few: at least {LEAST} are needed, {LEAST_OF_EACH} of each"
        )
    halves = stratified_split(correct, seed=0, share=0.5, image=image)
    parts: dict[str, list[tuple[torch.Tensor, ...]]] = {}
    levels = []
    for train, held_out in (halves, halves[::-1]):
        fitted = copy.deepcopy(calibrator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(predictions[train], labels[train])
        levels.append(_mean_score(fitted, predictions[train][unshifted[train]]))
        for kind, rows, truth, images in _list_groups(
            predictions[held_out], labels[held_out], image[held_out], "features" in calibrator.needs
        ):
            rows = fitted.select_views(rows)
            classes = fitted.compute_classes(rows)
            columns = (
                score(_compute_confidence(fitted, rows)),
                classes,
                truth,
                images,
                measure_agreement(fitted, rows, classes),
            )
            parts.setdefault(kind, []).append(tuple(column.cpu() for column in columns))
    groups = {
        kind: ScoredRows(*(torch.cat(column).numpy() for column in zip(*both, strict=True)))
        for kind, both in parts.items()
    }
    return _number_images(groups), sum(levels) / len(levels)


def _mean_score(fitted: "Calibrator", predictions: Predictions) -> float:
    return float(score(_compute_confidence(fitted, predictions)).mean())


def _compute_confidence(fitted: "Calibrator", predictions: Predictions) -> PerSample:
    fitted.to(predictions.logits.device)
    return fitted.compute_confidence(fitted.select_views(predictions))


def _list_groups(
    predictions: Predictions, labels: Labels, image: Labels, needs_features: bool
) -> list[tuple[str, Predictions, torch.Tensor, torch.Tensor]]:
    """Rows by kind: unshifted, each kind of shift, and each view of unshifted images."""
    kinds = predictions.shift_kinds()
    groups = []
    for kind in kinds.unique().tolist():
        rows = kinds == kind
        groups.append(
            (f"shift {kind}" if kind else "", predictions[rows], labels[rows], image[rows])
        )
    if predictions.view_logits is not None and not needs_features:
        rows = kinds == 0
        images, truth = predictions[rows], labels[rows]
        for view, name in enumerate(predictions.view_names):
            groups.append((f"view {name}", pseudo_shifted(images, truth, view), truth, image[rows]))
    return groups


def _number_images(groups: Mapping[str, ScoredRows]) -> dict[str, ScoredRows]:
    """The same with images numbered by the unshifted rows; rows without one are left out."""
    known, at = np.unique(groups[""].image, return_index=True)
    numbered = {}
    for kind, rows in groups.items():
        place = np.searchsorted(known, rows.image).clip(max=len(known) - 1)
        kept = rows.take(np.flatnonzero(known[place] == rows.image))
        image = at[np.searchsorted(known, kept.image)]
        numbered[kind] = replace(kept, image=image)
    return {kind: rows for kind, rows in numbered.items() if len(rows.score)}


def _find_reference(unshifted: ScoredRows, class_count: int) -> np.ndarray:
    """Between the mean score of all samples and that of each predicted class."""
    mean = unshifted.score.mean()
    count = np.bincount(unshifted.predicted, minlength=class_count)
    total = np.bincount(unshifted.predicted, unshifted.score, class_count)
    of_class = (total + CLASS_PRIOR * mean) / (count + CLASS_PRIOR)
    reference: np.ndarray = CLASS_SHARE * of_class + (1 - CLASS_SHARE) * mean
    return reference


def _mean_residual(batch: PseudoBatch, reference: np.ndarray) -> float:
    return float((batch.rows.score - reference[batch.rows.predicted]).mean())


def _adapt(scores: np.ndarray, mean_residual: float, weights: Weights) -> np.ndarray:
    level, slope, curve, origin = weights
    context = mean_residual - origin
    adapted: np.ndarray = scores + (level + slope * scores + curve * abs(context)) * context
    return adapted


def _fit_weights(
    batches: Sequence[PseudoBatch], means: Sequence[float], steepest: float
) -> Weights:
    """By log loss, every batch with the same weight."""
    s = np.concatenate([batch.rows.score for batch in batches])
    correct = np.concatenate([batch.rows.correct for batch in batches]).astype(float)
    sizes = [len(batch.rows.score) for batch in batches]
    context, weight = np.repeat(means, sizes), np.repeat(1 / np.array(sizes), sizes) / len(batches)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        level, slope, curve, origin = values
        c = context - origin
        bent = c * np.abs(c)
        z = s + (level + slope * s) * c + curve * bent
        error = weight * (expit(z) - correct)
        gradient = [
            error @ c,
            (error * s) @ c,
            error @ bent,
            -error @ (level + slope * s + 2 * curve * np.abs(c)),
        ]
        return float(weight @ (np.logaddexp(0, z) - correct * z)), np.array(gradient)

    bounds = [(0.0, HIGHEST), (0.0, steepest), (0.0, HIGHEST), (min(means), max(means))]
    start = np.array([0.1, 0.0, 0.1, float(np.clip(0.0, *bounds[3]))])
    return Weights(*minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x.tolist())
