"""Which views are worth their forward passes.

Every set of views is judged by the squared error of a logistic model on their evidence, on images
that the model was not fitted on. Gains are over the same model without views, image by image, so
their intervals are narrow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import ViewLogOdds, view_log_odds
from rightly.calibrators.solvers.optimise import single_threaded
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_platt, fit_ridge_logistic
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, PerSampleBool

FOLDS = 4
DRAWS = 1000
INTERVAL = (2.5, 97.5)  # percentiles of the gain when images are drawn again

Announce = Callable[[str], object]


@dataclass(frozen=True)
class Gain:
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

    without: Gain
    alone: tuple[Gain, ...]
    grown: tuple[Gain, ...]


def rank_views(
    predictions: Predictions,
    labels: AnyArray,
    *,
    most: int | None = None,
    seed: int = 0,
    announce: Announce = lambda message: None,
) -> ViewRanking:
    """Ranks views, and sets of at most that many; rows under synthetic shifts count too."""
    judge = _Judge(predictions, labels, seed)
    count = len(predictions.view_names)
    without = judge.gain(())
    alone = []
    for view in range(count):
        announce(predictions.view_names[view])
        alone.append(judge.gain((view,)))
    grown = []
    for gain in judge.grown(count if most is None else most):
        announce(" + ".join(gain.views))
        grown.append(gain)
    ranked = sorted(alone, key=lambda one: -one.gain)
    return ViewRanking(without, tuple(ranked), tuple(grown))


def best_views(predictions: Predictions, labels: AnyArray, extra_passes: int) -> tuple[str, ...]:
    """At most this many views, chosen one after the other by what each adds.

    At least one; no further one that adds nothing. In the order of choice.
    """
    if extra_passes < 1:
        raise ValueError(f"extra_passes must be at least 1, one a view, got {extra_passes}")
    chosen: tuple[str, ...] = ()
    best = -np.inf
    for gain in _Judge(predictions, labels, seed=0).grown(extra_passes):
        if chosen and gain.gain <= best:
            break
        chosen, best = gain.views, gain.gain
    return chosen


class _Judge:
    """Cross-fitted losses of any set of views; each view is read once."""

    def __init__(self, predictions: Predictions, labels: AnyArray, seed: int) -> None:
        if not predictions.view_names:
            raise ValueError(
                "views are to be ranked, but these predictions have none: collect some"
            )
        known = check_labels(labels, predictions)
        plain = predictions.unshifted()
        if not plain.any():
            raise ValueError("shift must be 0 for some rows, but every row is shifted")
        inverse = nll_inverse_temperature(predictions[plain].logits, known[plain])
        self.names = predictions.view_names
        self.class_count = predictions.class_count
        self.looks = ViewLogOdds(*(x.cpu() for x in view_log_odds(predictions, 1 / inverse)))
        self.classes: Labels = predictions.classes.cpu()
        self.correct: PerSampleBool = self.classes == known.cpu()
        self.image = predictions.image_ranks().cpu()
        self.seed = seed
        self.squares_without = self._squares(())[0]

    def gain(self, views: Sequence[int]) -> Gain:
        squares, log_loss = self._squares(views)
        gains = self.squares_without - squares
        low, high = self._interval(gains)
        names = tuple(self.names[view] for view in views)
        return Gain(names, squares.mean(), log_loss, gains.mean(), low, high)

    def grown(self, most: int) -> "list[Gain]":
        """Sets of one view, two, ...: each adds the view that lowers the squared error most."""
        chosen: tuple[int, ...] = ()
        found = []
        while len(chosen) < min(most, len(self.names)):
            rest = [view for view in range(len(self.names)) if view not in chosen]
            chosen = min(
                ((*chosen, view) for view in rest), key=lambda some: self._squares(some)[0].mean()
            )
            found.append(self.gain(chosen))
        return found

    def _squares(self, views: Sequence[int]) -> tuple[np.ndarray, float]:
        """Squared errors on images left out of the fit, and the mean log loss."""
        evidence = self.looks.take_views(views).evidence()
        logits = torch.zeros_like(self.looks.image)
        with torch.no_grad(), single_threaded():
            for fold in range(FOLDS):
                out = self.image % FOLDS == fold
                some = Rows(
                    evidence[~out],
                    self.classes[~out],
                    self.correct[~out],
                    torch.ones_like(logits[~out]),
                )
                scale = max(SETTINGS.ridge * int((~out).sum()), SETTINGS.min_ridge)
                penalty = torch.full((evidence.shape[1],), scale, dtype=torch.float64)
                weighed = fit_ridge_logistic(some, penalty, SETTINGS.class_ridge, self.class_count)
                score = weighed.logits(evidence, self.classes)
                line = fit_platt(score[~out], some.correct, some.weight)
                logits[out] = line(score[out])
        truth = self.correct.double()
        log_loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth)
        return (logits.sigmoid() - truth).square().numpy(), float(log_loss)

    def _interval(self, gains: np.ndarray) -> tuple[float, float]:
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
