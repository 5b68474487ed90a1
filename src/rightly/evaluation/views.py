"""Whether views are worth their forward passes, which of them, and how often.

`test_views` asks whether they gain anything at all with a method. `rank_views` evaluates every set
of views by the squared error of a logistic model on their meta-features; `compute_view_costs`
budgets of forward passes. All gains are on images that nothing was fitted on, image by image over
the same without views, so their intervals are narrow.
"""

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from rightly.calibrators import Calibrator, Cascade, calibrator, fallback_method
from rightly.calibrators.cascade import FULL_BAND, Band, HeldOut, cross_fit, select_band
from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.evidence import ViewLogOdds, view_log_odds
from rightly.calibrators.solvers.execution import single_threaded
from rightly.calibrators.solvers.ridge_logistic import Rows, fit_platt, fit_ridge_logistic
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.evaluation.results import SIGNIFICANT
from rightly.metrics import METRICS
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import holdout_mask, sort_rows
from rightly.progress import Progress, track
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, PerSampleBool

FOLDS = 4
DRAWS = 1000
INTERVAL = (2.5, 97.5)  # percentiles of the gain when images are drawn again
COST_METRICS = ("brier", "auroc", "ece")
NORMAL_95 = 1.96  # quantile, for the mean of paired differences
NEARLY_ALL = 0.9  # of the gain of all views


class PairedGain(NamedTuple):
    """Brier scores with and without views on the same held-out rows, and a paired test."""

    with_views: float
    without: float
    gain: float  # the mean over images of what views take off the squared error
    error: float  # its standard error
    p: float  # of a gain as large without any, one-sided
    images: int


@dataclass(frozen=True)
class ViewTest:
    """What views gain with a method on held-out rows."""

    views: tuple[str, ...]
    unshifted: PairedGain
    shifted: PairedGain | None = None  # on rows under synthetic shifts, where there are any

    @property
    def gains(self) -> list[PairedGain]:
        return [one for one in (self.unshifted, self.shifted) if one is not None]

    @property
    def is_detectable(self) -> bool:
        """Whether views gain something on either kind of rows, at 5 % in all (Bonferroni)."""
        return min(one.p for one in self.gains) < SIGNIFICANT / len(self.gains)

    def describe(self) -> str:
        """One sentence; of views that gain nothing, what `fit` does about them."""
        kinds = ("", "; on shifted rows ") if self.shifted else ("",)
        numbers = "".join(
            f"{kind}Brier {one.with_views:.4f} with, {one.without:.4f} without, "
            f"p {'< 0.001' if one.p < 0.001 else f'= {one.p:.2g}'}"
            for kind, one in zip(kinds, self.gains, strict=True)
        )
        text = f"views {', '.join(self.views)} gain "
        if self.is_detectable:
            return f"{text}on held-out rows ({numbers})"
        return (
            f"{text}nothing detectable on held-out rows ({numbers}): fitted without them, one "
            "forward pass per sample"
        )


def test_views(
    predictions: Predictions,
    labels: AnyArray,
    method: str | Calibrator = "correctness_logistic",
    **arguments: Any,
) -> ViewTest:
    """Test whether a method gains by the views, each half of the images fitted on the other.

    For methods that use views and do not need them, as a name with its arguments or unfitted.
    """
    truth = check_labels(labels, predictions)
    built = method if isinstance(method, Calibrator) else calibrator(method, **arguments)
    if not predictions.view_names or "view_logits" not in built.uses:
        raise ValueError(
            f"method must be one that uses views and does not need them, with predictions that "
            f"have some, got {built.title} with views {list(predictions.view_names)}"
        )
    half = holdout_mask(predictions, 0.5)
    squares = torch.zeros(2, len(predictions), dtype=torch.float64)
    for i, data in enumerate((predictions, predictions.without_views())):
        for held_out in (half, ~half):
            with warnings.catch_warnings():  # of halves: the fit on all rows warns by itself
                warnings.simplefilter("ignore")
                fitted = copy.deepcopy(built).fit(data[~held_out], truth[~held_out])
                confidence = fitted.confidence(data[held_out]).double()
            correct = fitted.classes(data[held_out]) == truth[held_out]
            squares[i, held_out.cpu()] = (confidence - correct.double()).square().cpu()
    image, as_is = predictions.image_ranks().cpu().numpy(), predictions.unshifted().cpu().numpy()
    errors = squares.numpy()
    shifted = None if as_is.all() else _test_gain(errors[:, ~as_is], image[~as_is])
    return ViewTest(predictions.view_names, _test_gain(errors[:, as_is], image[as_is]), shifted)


test_views.__test__ = False  # type: ignore[attr-defined]  # not what pytest collects


def _test_gain(squares: np.ndarray, image: np.ndarray) -> PairedGain:
    """A t test of the gains by image: rows of one image are no new evidence."""
    from scipy.special import stdtr

    _, rank, count = np.unique(image, return_inverse=True, return_counts=True)
    gains = np.bincount(rank, squares[1] - squares[0]) / count
    gain, n = float(gains.mean()), len(gains)
    error = float(gains.std(ddof=1) / n**0.5) if n > 1 else float("inf")
    p = float(stdtr(n - 1, -gain / error)) if error > 0 and n > 1 else 1.0
    with_views, without = squares.mean(1).tolist()
    return PairedGain(with_views, without, gain, error, p, n)


@dataclass(frozen=True)
class ViewGain:
    """Gain of a set of views over none, in mean squared error; and its log loss."""

    views: tuple[str, ...]
    brier: float
    log_loss: float
    gain: float
    low: float
    high: float

    @property
    def per_pass(self) -> float:
        """Gain per further forward pass."""
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
    progress: Progress | bool = False,
) -> ViewRanking:
    """Rank views, and sets of at most that many; rows under synthetic shifts count too."""
    if most is not None and most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    losses = _HeldOutLosses(predictions, labels, seed)
    names, count = predictions.view_names, len(predictions.view_names)
    largest = count if most is None else min(most, count)
    alone: list[ViewGain] = []
    grown: list[ViewGain] = []
    total = count + largest
    with track(progress) as step:
        for view in range(count):
            step(f"ranking views: {names[view]}", view, total)
            alone.append(losses.compute_gain((view,)))
        for gain in losses.grow(largest):
            step(f"ranking views: {' + '.join(gain.views)}", count + len(grown), total)
            grown.append(gain)
    ranked = sorted(alone, key=lambda one: -one.gain)
    every = grown[-1] if largest == count else losses.compute_gain(range(count))
    return ViewRanking(losses.compute_gain(()), tuple(ranked), tuple(grown), every)


def select_views(predictions: Predictions, labels: AnyArray, extra_passes: int) -> tuple[str, ...]:
    """Select at most this many views greedily, stopping where a further one adds nothing.

    At least one, in the order of selection.
    """
    if extra_passes < 1:
        raise ValueError(f"extra_passes must be at least 1, one per view, got {extra_passes}")
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
            raise ValueError("predictions must have views to rank, but have none: collect some")
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

    def grow(self, most: int) -> Iterator[ViewGain]:
        """Sets of one view, two, ...: each adds the view that lowers the squared error most."""
        chosen: tuple[int, ...] = ()
        while len(chosen) < min(most, len(self.names)):
            rest = [view for view in range(len(self.names)) if view not in chosen]
            larger = ((*chosen, view) for view in rest)
            chosen = min(larger, key=lambda views: self._compute_squares(views)[0].mean())
            yield self.compute_gain(chosen)

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


@dataclass(frozen=True)
class ViewCost:
    """One budget in mean forward passes: those it takes on these samples, and the metrics."""

    budget: float
    passes: float
    band: Band  # confidence without views at which views are evaluated
    brier: float
    auroc: float
    ece: float
    gain: float  # of the Brier score over no views
    low: float  # of its 95 % interval
    high: float


def compute_view_costs(
    predictions: Predictions,
    labels: AnyArray,
    method: str = "correctness_logistic",
    budgets: Sequence[float] = (),
    first: str | None = None,
) -> list[ViewCost]:
    """Compute Brier score, AUROC and ECE at each budget, on held-out calibration samples.

    The last point evaluates all views of every image, whether they pay or not.
    Both calibrators are evaluated on the half that they were not fitted on, and the band for one
    half is selected on the other.
    """
    rows = predictions.unshifted()
    truth = check_labels(labels, predictions)
    unshifted, truth = sort_rows(predictions[rows], truth[rows])
    if not unshifted.view_names:
        raise ValueError(
            "predictions must have views to spend a budget on, but have none: collect some"
        )
    pair = calibrator(first or fallback_method(method)), calibrator(method)
    if not pair[1].uses_views:
        raise ValueError(f"method must be one that uses views, got {method}")
    with torch.no_grad(), single_threaded():
        held_out = cross_fit(*pair, unshifted, truth)
    m = len(unshifted.view_names)
    points = [_compute_point(held_out, budget, m) for budget in budgets or default_budgets(m)]
    everywhere = np.ones(len(held_out.first), dtype=bool)
    return [*points, _measure(held_out, float(m + 1), everywhere, m, FULL_BAND)]


def select_views_for_budget(
    predictions: Predictions, labels: AnyArray, method: str, budget: float
) -> tuple[str, ...]:
    """Select the views, and how many, with which a budget gives the lowest squared error.

    Fewer views are cheaper and can be evaluated for more images.
    """
    order = select_views(predictions, labels, len(predictions.view_names))
    sets = [order[:count] for count in range(1, len(order) + 1)]

    def error(names: tuple[str, ...]) -> float:
        return compute_view_costs(predictions.with_views(names), labels, method, [budget])[0].brier

    return min(sets, key=error)


def measure_passes(calibrator: Calibrator, predictions: Predictions) -> float:
    """Mean forward passes per image; with a budget, views are not always evaluated."""
    deferred = 1.0
    if isinstance(calibrator, Cascade):
        deferred = float(calibrator.needs_views(predictions).double().mean())
    return 1 + deferred * len(calibrator.view_names)


def default_budgets(views: int) -> list[float]:
    """Budgets from one pass to all of them, closer together where passes are few."""
    below = [1.0, 1.1, 1.25, 1.5, 1.75, 2.0]
    return [b for b in below if b < views + 1] + [float(b) for b in range(3, views + 1)]


def _compute_point(held_out: HeldOut, budget: float, views: int) -> ViewCost:
    n = len(held_out.first)
    allowed = (budget - 1) / views
    order = np.random.default_rng(0).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    is_deferred = np.zeros(n, dtype=bool)
    for selection, evaluation in (halves, halves[::-1]):
        low, high = select_band(held_out.take(selection), allowed)
        confidence = held_out.first[evaluation]
        is_deferred[evaluation] = (confidence >= low) & (confidence <= high)
    return _measure(held_out, budget, is_deferred, views, select_band(held_out, allowed))


def _measure(
    held_out: HeldOut, budget: float, is_deferred: np.ndarray, views: int, band: Band
) -> ViewCost:
    confidence = np.where(is_deferred, held_out.second, held_out.first)
    values = {name: METRICS[name].measure(confidence, held_out.correct) for name in COST_METRICS}
    gains = (held_out.first - held_out.correct) ** 2 - (confidence - held_out.correct) ** 2
    gain, error = float(gains.mean()), float(gains.std() / len(gains) ** 0.5)
    interval = {"gain": gain, "low": gain - NORMAL_95 * error, "high": gain + NORMAL_95 * error}
    return ViewCost(budget, 1 + views * float(is_deferred.mean()), band, **values, **interval)


def recommend_views(ranking: ViewRanking) -> str:
    """Recommend the smallest set of views with nearly all of the gain, if it is detectable."""
    every = ranking.every
    best = max(ranking.grown, key=lambda one: one.gain)
    chosen = (ranking.find_smallest(NEARLY_ALL) if every.gain > 0 else None) or best
    if chosen.low <= 0:
        return f"take no view: the best set gains {_describe_noise(chosen)}"
    *others, last = chosen.views
    named = f"{', '.join(others)} and {last}" if others else last
    passes = f"{len(chosen.views)} further pass{'es' if others else ''} per image"
    if len(chosen.views) == len(every.views):
        return f"take {named}: {_format(chosen)} for {passes}"
    share = _describe_share(chosen, every)
    return f"take {named}: {share} for {passes} instead of {len(every.views)}"


def recommend_budget(costs: Sequence[ViewCost]) -> str:
    """Recommend the fewest passes with nearly all of the gain, if it is detectable."""
    every = costs[-1]
    best = max(costs, key=lambda one: one.gain)
    if best.low <= 0:
        return f"take no view: the best budget gains {_describe_noise(best)}"
    enough = [one for one in costs if one.gain >= NEARLY_ALL * every.gain and one.low > 0]
    chosen = min(enough or [best], key=lambda one: one.passes)
    passes = f"{chosen.passes:.2f} passes per image"
    if chosen is every:
        return f"evaluate all views of every image: {_format(chosen)} for {passes}"
    share = _describe_share(chosen, every)
    return f"take --budget {chosen.budget:g}: {share} for {passes} instead of {every.passes:.2f}"


def _describe_share(chosen: ViewGain | ViewCost, every: ViewGain | ViewCost) -> str:
    if chosen.gain >= every.gain:
        return "no less than the gain of all views"
    return f"{chosen.gain / every.gain:.0%} of the gain of all views".replace("%", " %")


def _describe_noise(best: ViewGain | ViewCost) -> str:
    return f"{_format(best)}, which may be chance; collect more images, or other views"


def _format(gained: ViewGain | ViewCost) -> str:
    interval = f"95 % interval {100 * gained.low:.2f} to {100 * gained.high:.2f}"
    return f"{100 * gained.gain:.2f} points of the Brier score ({interval})"
