"""Which views are worth their forward passes.

Every set of views is evaluated by the squared error of a logistic model on their evidence, on
images that the model was not fitted on. Gains are over the same model without views, image by
image, so their intervals are narrow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import ViewLogOdds, view_log_odds
from rightly.calibrators.row_order import sort_rows
from rightly.calibrators.solvers.execution import single_threaded
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_platt, fit_ridge_logistic
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, PerSampleBool

FOLDS = 4
DRAWS = 1000
INTERVAL = (2.5, 97.5)  # percentiles of the gain when images are drawn again


@dataclass(frozen=True)
class ViewGain:
    """What a set of views gains over none, in mean squared error; and the log loss it reaches."""

    views: tuple[str, ...]
    brier: float
    log_loss: float
    gain: float
    low: float
    high: float

    @property
    def per_pass(self) -> float:
        """The gain for each further forward pass."""
        return self.gain / max(1, len(self.views))


@dataclass(frozen=True)
class ViewRanking:
    """None, each view alone, best first, and the sets that grow by the view that gains most."""

    without: ViewGain
    alone: tuple[ViewGain, ...]
    grown: tuple[ViewGain, ...]
    every: ViewGain  # all views together

    def find_smallest(self, share: float) -> ViewGain | None:
        """The smallest grown set that gains this share of what all do; None where none does."""
        return next((one for one in self.grown if one.gain >= share * self.every.gain), None)


def rank_views(
    predictions: Predictions,
    labels: AnyArray,
    *,
    most: int | None = None,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> ViewRanking:
    """Ranks views, and sets of at most that many; rows under synthetic shifts count too.

    `progress` is called with the names of each set of views.
    """
    if most is not None and most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    losses = _HeldOutLosses(predictions, labels, seed)
    count = len(predictions.view_names)
    alone = []
    for view in range(count):
        if progress is not None:
            progress(predictions.view_names[view])
        alone.append(losses.compute_gain((view,)))
    grown = []
    for gain in losses.grow(count if most is None else most):
        if progress is not None:
            progress(" + ".join(gain.views))
        grown.append(gain)
    ranked = sorted(alone, key=lambda one: -one.gain)
    every = grown[-1] if len(grown) == count else losses.compute_gain(range(count))
    return ViewRanking(losses.compute_gain(()), tuple(ranked), tuple(grown), every)


def select_views(predictions: Predictions, labels: AnyArray, extra_passes: int) -> tuple[str, ...]:
    """At most this many views, chosen one after the other by what each adds.

    At least one; no further one that adds nothing. In the order of choice.
    """
    if extra_passes < 1:
        raise ValueError(f"extra_passes must be at least 1, one a view, got {extra_passes}")
    chosen: tuple[str, ...] = ()
    best = -np.inf
    for gain in _HeldOutLosses(predictions, labels, seed=0).grow(extra_passes):
        if chosen and gain.gain <= best:
            break
        chosen, best = gain.views, gain.gain
    return chosen


class _HeldOutLosses:
    """Cross-fitted losses of any set of views; the evidence of each view is computed once."""

    def __init__(self, predictions: Predictions, labels: AnyArray, seed: int) -> None:
        if not predictions.view_names:
            raise ValueError(
                "views are to be ranked, but these predictions have none: collect some"
            )
        predictions, truth = sort_rows(predictions, check_labels(labels, predictions))
        rows = predictions.unshifted()
        if not rows.any():
            raise ValueError("shift must be 0 for some rows, but every row is shifted")
        inverse = nll_inverse_temperature(predictions[rows].logits, truth[rows])
        self.names = predictions.view_names
        self.class_count = predictions.class_count
        self.log_odds = ViewLogOdds(*(x.cpu() for x in view_log_odds(predictions, 1 / inverse)))
        self.classes: Labels = predictions.classes.cpu()
        self.correct: PerSampleBool = self.classes == truth.cpu()
        self.image = predictions.image_ranks().cpu()
        self.seed = seed
        self.squares_without = self._compute_squares(())[0]

    def compute_gain(self, views: Sequence[int]) -> ViewGain:
        squares, log_loss = self._compute_squares(views)
        gains = self.squares_without - squares
        low, high = self._compute_interval(gains)
        names = tuple(self.names[view] for view in views)
        return ViewGain(names, squares.mean(), log_loss, gains.mean(), low, high)

    def grow(self, most: int) -> list[ViewGain]:
        """Sets of one view, two, ...: each adds the view that lowers the squared error most."""
        chosen: tuple[int, ...] = ()
        gains = []
        while len(chosen) < min(most, len(self.names)):
            rest = [view for view in range(len(self.names)) if view not in chosen]
            larger = ((*chosen, view) for view in rest)
            chosen = min(larger, key=lambda views: self._compute_squares(views)[0].mean())
            gains.append(self.compute_gain(chosen))
        return gains

    def _compute_squares(self, views: Sequence[int]) -> tuple[np.ndarray, float]:
        """Squared errors on images left out of the fit, and the mean log loss."""
        evidence = self.log_odds.take_views(views).evidence()
        logits = torch.zeros_like(self.log_odds.image)
        with torch.no_grad(), single_threaded():
            for fold in range(FOLDS):
                held_out = self.image % FOLDS == fold
                rows = Rows(
                    evidence[~held_out],
                    self.classes[~held_out],
                    self.correct[~held_out],
                    torch.ones_like(logits[~held_out]),
                )
                scale = max(SETTINGS.ridge * int((~held_out).sum()), SETTINGS.min_ridge)
                penalty = torch.full((evidence.shape[1],), scale, dtype=torch.float64)
                model = fit_ridge_logistic(rows, penalty, SETTINGS.class_ridge, self.class_count)
                score = model.logits(evidence, self.classes)
                platt = fit_platt(score[~held_out], rows.correct, rows.weight)
                logits[held_out] = platt(score[held_out])
        correct = self.correct.double()
        log_loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, correct)
        return (logits.sigmoid() - correct).square().numpy(), float(log_loss)

    def _compute_interval(self, gains: np.ndarray) -> tuple[float, float]:
        """Bootstrap percentiles of the mean gain; all copies of an image are drawn together."""
        image = self.image.numpy()
        total, count = np.bincount(image, gains), np.bincount(image)
        generator = np.random.default_rng(self.seed)
        means = []
        for _ in range(DRAWS):
            drawn = generator.integers(0, len(total), len(total))
            means.append(total[drawn].sum() / count[drawn].sum())
        low, high = np.percentile(means, INTERVAL)
        return float(low), float(high)
