"""Learn how confidence changes under shift, from scores that are cross-fitted by image.

Confidence under a shift is too high by an amount that grows as the scores of the batch fall, and
faster the farther they are: three weights of that (see `shift_adaptation`) and the reference point
are fitted by logistic regression over pseudo-batches with known labels. Leaving out one kind of
shift at a time tells how far the expected accuracy of a kind that was never seen may be off.

With labels of n new samples, whose mean score is m (weighted by p (1 - p), by what they tell about
the level), the score becomes s + level + (slope - 1) (s - m), where level and slope are the most
probable ones: logistic regression of correctness, with normal priors around no change (level 0,
slope 1). So few labels change little and many decide alone. The slope is positive: neither the
predicted class nor the ranking changes.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit

from rightly.calibrators.checks import bound_confidence
from rightly.calibrators.drift_reference import (
    SKEW,
    ScoredRows,
    learn_drift_reference,
    measure_agreement,
)
from rightly.calibrators.pseudo_shift import pseudo_shifted
from rightly.calibrators.shift_adaptation import (
    InterceptSlope,
    ShiftAdaptation,
    ShiftError,
    score,
)
from rightly.calibrators.solvers.execution import single_threaded
from rightly.predictions import Predictions
from rightly.predictions.rows import stratified_split
from rightly.tensor_shapes import Labels, PerSample

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

MIXES = (0.25, 0.5, 0.75)  # shares of shifted images in mixed batches
SKEWED = 8  # skewed batches of unshifted images
MAX_ROWS = 2000  # of a pseudo-batch: more would only cost time
UNSHIFTED = ""  # the kind of a batch without shift
CLASS_SHARE = 0.5  # of the class mean in the reference; the rest is the mean of all
CLASS_PRIOR = 20.0  # samples' worth by which a class mean is shrunk to the mean of all
MIN_SAMPLES, MIN_PER_OUTCOME = 60, 10  # images to learn from; right and wrong ones among them
MAX_EXTRAPOLATION = 3.0  # shift estimates allowed, in units of the lowest that was learned from
MAX_EXTRAPOLATION_OF_SHIFTS = 1.5  # the same where real shifts were learned from
MAX_WEIGHT = 1.0  # of the estimate: a small one moves a score at most as far as it was moved
MAX_SLOPE_CHANGE = 0.9  # share of the slope over the score that an estimate may take away

# Standard deviations of the priors: what real shifts ask for, by benchmarks/own/recalibrating.py
# on three classifiers for developing (root mean square of the level, and of the slope less 1).
LEVEL_SD, SLOPE_SD = 0.4, 0.2
MIN_SLOPE = 0.1


@dataclass(frozen=True, eq=False)
class PseudoBatch:
    """Rows that came together, and the kind of shift in them."""

    kind: str
    rows: ScoredRows
    is_pure: bool = False  # all of them shifted, in the classes' own shares


class Weights(NamedTuple):
    """Of the shift estimate in level, slope and curve; and the mean score that counts as none."""

    level: float
    slope: float
    curve: float
    origin: float


def learn_shift_adaptation(
    calibrator: "Calibrator", predictions: Predictions, labels: Labels
) -> ShiftAdaptation:
    """Learn how a fitted calibrator's confidence changes under shift, from labelled rows."""
    groups, level_of_halves = cross_fit_scores(calibrator, predictions, labels)
    unshifted = groups.pop("")
    # Fits on halves may lie higher or lower than the fit on all: both are measured on the rows
    # that they were fitted on, where each is as far too high as the other.
    moved = _mean_score(calibrator, predictions[predictions.unshifted()]) - level_of_halves
    if not groups:
        raise _find_no_shifts(calibrator)
    class_count = predictions.class_count
    batches = make_pseudo_batches(unshifted, groups, class_count)
    reference = _find_reference(unshifted, class_count)
    means = {id(batch): _mean_shift_score(batch, reference) for batch in batches}
    has_shifts = bool(predictions.shift_kinds().any())
    reach = MAX_EXTRAPOLATION_OF_SHIFTS if has_shifts else MAX_EXTRAPOLATION
    values = np.array(list(means.values()))
    low, high = reach * min(float(values.min()), 0.0), float(values.max())
    # Pseudo-shifted samples show how the level moves with the estimate, but not the slope.
    steepest = MAX_SLOPE_CHANGE / max(high - low, 1e-6) if has_shifts and len(groups) > 1 else 0.0

    def fit(chosen: Sequence[PseudoBatch]) -> Weights:
        return _fit_weights(chosen, [means[id(batch)] for batch in chosen], steepest)

    with single_threaded():
        weights = fit(batches)
        misses, kind_estimates = [], []
        for kind in groups if len(groups) > 1 else ():
            without = fit([batch for batch in batches if batch.kind != kind])
            (held_out,) = (batch for batch in batches if batch.kind == kind and batch.is_pure)
            adapted = _adapt(held_out.rows.score, means[id(held_out)], without)
            kind_estimates.append(means[id(held_out)] - weights.origin)
            misses.append(float(expit(adapted).mean() - held_out.rows.correct.mean()))
    spread = float(np.mean((values - weights.origin) ** 2))
    noise = float((unshifted.score - reference[unshifted.predicted]).var()) / max(spread, 1e-6)
    learned = ShiftAdaptation.of(
        reference=torch.from_numpy(reference + weights.origin + moved),
        weights=torch.tensor([weights.level, weights.slope, weights.curve]),
        limits=torch.tensor([low, high]) - weights.origin,
        noise=torch.tensor(noise),
        misses=torch.tensor(misses),
        kind_estimates=torch.tensor(kind_estimates),
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
    if sum(counts) < MIN_SAMPLES or min(counts) < MIN_PER_OUTCOME:
        raise ShiftError(
            f"{sum(counts)} unshifted calibration images, {counts[0]} right and {counts[1]} wrong, "
            f"are too few: at least {MIN_SAMPLES} are needed, {MIN_PER_OUTCOME} of each"
        )
    needs_features = "features" in calibrator.needs
    has_views = predictions.view_logits is not None and not needs_features
    if not has_views and not bool(predictions.shift_kinds().any()):
        raise _find_no_shifts(calibrator)  # before anything is fitted
    halves = stratified_split(correct, seed=0, share=0.5, image=image)
    parts: dict[str, list[tuple[torch.Tensor, ...]]] = {}
    levels = []
    for train, held_out in (halves, halves[::-1]):
        fitted, seen = copy.deepcopy(calibrator), predictions[train]
        if calibrator.uses_views and not calibrator.view_names:  # fitted without: they only stand
            seen = seen.without_views()  # for shifted samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(seen, labels[train])
        levels.append(_mean_score(fitted, predictions[train][unshifted[train]]))
        for kind, rows, truth, images in _list_groups(
            predictions[held_out], labels[held_out], image[held_out], needs_features
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


def _find_no_shifts(calibrator: "Calibrator") -> ShiftError:
    lacking = "features of views" if "features" in calibrator.needs else "views"
    return ShiftError(
        f"the calibration data have no shifted rows, and no {lacking} to stand for them: "
        "collect shifted images too (rightly collect --shifts standard)"
    )


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


def _mean_shift_score(batch: PseudoBatch, reference: np.ndarray) -> float:
    return float((batch.rows.score - reference[batch.rows.predicted]).mean())


def _adapt(scores: np.ndarray, mean_score: float, weights: Weights) -> np.ndarray:
    level, slope, curve, origin = weights
    at = mean_score - origin
    adapted: np.ndarray = scores + (level + slope * scores + curve * abs(at)) * at
    return adapted


def _fit_weights(
    batches: Sequence[PseudoBatch], means: Sequence[float], steepest: float
) -> Weights:
    """By log loss, every batch with the same weight."""
    s = np.concatenate([batch.rows.score for batch in batches])
    correct = np.concatenate([batch.rows.correct for batch in batches]).astype(float)
    sizes = [len(batch.rows.score) for batch in batches]
    estimate = np.repeat(means, sizes)
    weight = np.repeat(1 / np.array(sizes), sizes) / len(batches)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        level, slope, curve, origin = values
        c = estimate - origin
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

    bounds = [(0.0, MAX_WEIGHT), (0.0, steepest), (0.0, MAX_WEIGHT), (min(means), max(means))]
    start = np.array([0.1, 0.0, 0.1, float(np.clip(0.0, *bounds[3]))])
    return Weights(*minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x.tolist())


def make_pseudo_batches(
    unshifted: ScoredRows, shifted: Mapping[str, ScoredRows], class_count: int, seed: int = 0
) -> list[PseudoBatch]:
    """Unshifted images; each kind of shift, pure and mixed with them; all with skewed classes too.

    A batch of hard classes is no shift: skewed batches keep the fit from taking it for one.
    """
    rng = np.random.default_rng(seed)
    batches = [PseudoBatch(UNSHIFTED, _thin(unshifted, rng))]
    batches += [PseudoBatch(UNSHIFTED, _skew(unshifted, class_count, rng)) for _ in range(SKEWED)]
    for kind, rows in shifted.items():
        thinned = _thin(rows, rng)
        batches.append(PseudoBatch(kind, thinned, is_pure=True))
        batches += [PseudoBatch(kind, _mix(unshifted, thinned, share, rng)) for share in MIXES]
        batches.append(PseudoBatch(kind, _skew(rows, class_count, rng)))
    return batches


def _thin(rows: ScoredRows, rng: np.random.Generator) -> ScoredRows:
    n = len(rows.score)
    return rows if n <= MAX_ROWS else rows.take(np.sort(rng.permutation(n)[:MAX_ROWS]))


def _skew(rows: ScoredRows, class_count: int, rng: np.random.Generator) -> ScoredRows:
    """As many rows, drawn with replacement so that the classes have random shares."""
    share = rng.dirichlet(np.full(class_count, SKEW))
    per_row = (share / np.maximum(np.bincount(rows.label, minlength=class_count), 1))[rows.label]
    if not per_row.sum() > 0:  # all weight on classes that are not there
        return _thin(rows, rng)
    count = min(len(per_row), MAX_ROWS)
    return rows.take(rng.choice(len(per_row), count, p=per_row / per_row.sum()))


def _mix(
    unshifted: ScoredRows, shifted: ScoredRows, share: float, rng: np.random.Generator
) -> ScoredRows:
    """The same images, this share of them shifted."""
    is_shifted = rng.random(len(shifted.score)) < share
    same = unshifted.take(shifted.image)
    return _concatenate([shifted.take(is_shifted), same.take(~is_shifted)])


def _concatenate(parts: Sequence[ScoredRows]) -> ScoredRows:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return ScoredRows(*(np.concatenate(column) for column in columns))


@torch.no_grad()
def learn_intercept_slope(
    calibrator: "Calibrator", predictions: Predictions, labels: Labels
) -> InterceptSlope:
    """Correct the unadapted confidence by the labels of these unshifted rows."""
    confidence = bound_confidence(calibrator.compute_confidence(predictions), predictions)
    correct = calibrator.compute_classes(predictions) == labels
    scores = score(confidence).cpu().numpy()
    made = InterceptSlope.of(*fit_intercept_and_slope(scores, correct.cpu().numpy()))
    return made.to(predictions.logits.device)


def fit_intercept_and_slope(
    scores: np.ndarray,
    correct: np.ndarray,
    level_sd: float = LEVEL_SD,
    slope_sd: float = SLOPE_SD,
) -> tuple[float, float]:
    """Intercept and slope of the most probable correction of these scores."""
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
        bounds=[(None, None), (MIN_SLOPE - 1, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )
    level, tilt = solved.x.tolist()
    return level - tilt * centre, 1 + tilt
