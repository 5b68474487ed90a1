"""What forward passes buy: the cost of looking at views against what they gain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rightly.calibrators import calibrator, first_of
from rightly.calibrators.cascade import FULL_BAND, Band, HeldOut, cross_fit, select_band
from rightly.calibrators.solvers.optimise import single_threaded
from rightly.evaluation.measurement import metric
from rightly.evaluation.view_selection import best_views
from rightly.predictions import Predictions, check_labels
from rightly.shapes import AnyArray

METRICS = ("brier", "auroc", "ece")


@dataclass(frozen=True)
class Point:
    """One budget: the passes it really takes, and the metrics."""

    budget: float
    passes: float
    band: Band  # confidence without views at which views are looked at
    brier: float
    auroc: float
    ece: float


def cost_curve(
    predictions: Predictions,
    labels: AnyArray,
    method: str = "rightly",
    budgets: Sequence[float] = (),
    first: str | None = None,
) -> list[Point]:
    """Brier score, AUROC and ECE at each budget, on calibration samples not fitted on.

    The last point looks at all views of every image, whether they pay or not.
    Both calibrators judge the half that they were not fitted on, and the band for one half is
    chosen on the other.
    """
    rows = predictions.unshifted()
    shown, truth = predictions[rows], check_labels(labels, predictions)[rows]
    if not shown.view_names:
        raise ValueError("a budget is for views, but these predictions have none: collect them")
    sides = calibrator(first or first_of(method)), calibrator(method)
    if not sides[1].uses_views:
        raise ValueError(f"method must be one that looks at views, got {method}")
    with torch.no_grad(), single_threaded():
        judged = cross_fit(*sides, shown, truth)
    m = len(shown.view_names)
    points = [_point(judged, budget, m) for budget in budgets or default_budgets(m)]
    everywhere = np.ones(len(judged.first), dtype=bool)
    return [*points, _measured(judged, float(m + 1), everywhere, m, FULL_BAND)]


def views_for_budget(
    predictions: Predictions, labels: AnyArray, method: str, budget: float
) -> tuple[str, ...]:
    """The views, and how many of them, with which a budget buys the lowest squared error.

    Fewer views are cheaper and can be looked at for more images.
    """
    order = best_views(predictions, labels, len(predictions.view_names))
    sets = [order[:count] for count in range(1, len(order) + 1)]

    def error(names: tuple[str, ...]) -> float:
        return cost_curve(predictions.with_views(names), labels, method, [budget])[0].brier

    return min(sets, key=error)


def default_budgets(views: int) -> list[float]:
    """From one pass to all of them, closer together where passes are few."""
    below = [1.0, 1.1, 1.25, 1.5, 1.75, 2.0]
    return [b for b in below if b < views + 1] + [float(b) for b in range(3, views + 1)]


def _point(judged: HeldOut, budget: float, views: int) -> Point:
    n = len(judged.first)
    allowed = (budget - 1) / views
    order = np.random.default_rng(0).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    asked = np.zeros(n, dtype=bool)
    for chosen_on, judged_on in (halves, halves[::-1]):
        low, high = select_band(judged.take(chosen_on), allowed)
        some = judged.first[judged_on]
        asked[judged_on] = (some >= low) & (some <= high)
    return _measured(judged, budget, asked, views, select_band(judged, allowed))


def _measured(
    judged: HeldOut,
    budget: float,
    asked: np.ndarray,
    views: int,
    band: Band,
) -> Point:
    confidence = np.where(asked, judged.second, judged.first)
    values = {name: metric(name).measure(confidence, judged.correct) for name in METRICS}
    return Point(budget, 1 + views * float(asked.mean()), band, **values)
