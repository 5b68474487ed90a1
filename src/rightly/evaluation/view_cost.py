"""What forward passes buy: the cost of looking at views against what they gain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rightly.calibrators import Calibrator, Cascade, calibrator, first_of
from rightly.calibrators.cascade import FULL_BAND, Band, HeldOut, cross_fit, select_band
from rightly.calibrators.row_order import sort_rows
from rightly.calibrators.solvers.execution import single_threaded
from rightly.evaluation.view_selection import select_views
from rightly.metrics import METRICS
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray

COST_METRICS = ("brier", "auroc", "ece")
NORMAL_95 = 1.96  # quantile, for the mean of paired differences


@dataclass(frozen=True)
class ViewCost:
    """One budget in mean forward passes: those it really takes, and the metrics."""

    budget: float
    passes: float
    band: Band  # confidence without views at which views are looked at
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
    """Brier score, AUROC and ECE at each budget, on calibration samples not fitted on.

    The last point looks at all views of every image, whether they pay or not.
    Both calibrators are evaluated on the half that they were not fitted on, and the band for one
    half is selected on the other.
    """
    rows = predictions.unshifted()
    truth = check_labels(labels, predictions)
    unshifted, truth = sort_rows(predictions[rows], truth[rows])
    if not unshifted.view_names:
        raise ValueError("a budget is for views, but these predictions have none: collect them")
    pair = calibrator(first or first_of(method)), calibrator(method)
    if not pair[1].uses_views:
        raise ValueError(f"method must be one that looks at views, got {method}")
    with torch.no_grad(), single_threaded():
        held_out = cross_fit(*pair, unshifted, truth)
    m = len(unshifted.view_names)
    points = [_compute_point(held_out, budget, m) for budget in budgets or default_budgets(m)]
    everywhere = np.ones(len(held_out.first), dtype=bool)
    return [*points, _measure(held_out, float(m + 1), everywhere, m, FULL_BAND)]


def select_views_for_budget(
    predictions: Predictions, labels: AnyArray, method: str, budget: float
) -> tuple[str, ...]:
    """The views, and how many of them, with which a budget buys the lowest squared error.

    Fewer views are cheaper and can be looked at for more images.
    """
    order = select_views(predictions, labels, len(predictions.view_names))
    sets = [order[:count] for count in range(1, len(order) + 1)]

    def error(names: tuple[str, ...]) -> float:
        return compute_view_costs(predictions.with_views(names), labels, method, [budget])[0].brier

    return min(sets, key=error)


def measure_passes(calibrator: Calibrator, predictions: Predictions) -> float:
    """Forward passes for each image, on average: with a budget views are not always looked at."""
    deferred = 1.0
    if isinstance(calibrator, Cascade):
        deferred = float(calibrator.needs_views(predictions).double().mean())
    return 1 + deferred * len(calibrator.view_names)


def default_budgets(views: int) -> list[float]:
    """From one pass to all of them, closer together where passes are few."""
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
