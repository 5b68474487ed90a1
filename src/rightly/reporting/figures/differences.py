"""Figures of values with intervals: what views change, what passes buy, what was compared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rightly.evaluation.results import REFERENCE, average_seeds, unique
from rightly.evaluation.views import COST_METRICS
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import replicate_metrics
from rightly.reporting.formatting import display_factor
from rightly.resampling import draw_resamples, interval

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.evaluation.views import ViewCost
    from rightly.reporting.figures.kinds import FigureData


Place = tuple[str, str]  # test set and metric


class Change(NamedTuple):
    """A value, its difference from that of the base, and its interval, as they are shown."""

    value: float
    change: float
    low: float
    high: float


class _ChangesFromBase:
    """Measures calibrators on the same resamples as one that needs no views."""

    def __init__(self, data: "FigureData", metrics: Sequence[str]) -> None:
        self.data, self.metrics = data, metrics
        self.resamples = {
            dataset: draw_resamples(len(test), data.resamples, data.seed)
            for dataset, (test, _) in data.tests.items()
        }
        self.base = self._measure(self.fit(REFERENCE))

    def fit(self, method: str, views: Sequence[str] = ()) -> "Calibrator":
        from rightly.evaluation.measurement import fit_method

        assert self.data.cal is not None
        predictions, labels = self.data.cal
        chosen = predictions.with_views(views) if views else predictions
        return fit_method(method, chosen, labels, self.data.seed)

    def _measure(self, calibrator: "Calibrator") -> dict[Place, tuple[float, np.ndarray]]:
        from rightly.evaluation.measurement import compute_outcomes, compute_values

        measured = {}
        for dataset, (test, truth) in self.data.tests.items():
            shown = calibrator.select_views(test)
            outcomes = compute_outcomes(calibrator, shown, truth, self.metrics)
            resamples = self.resamples[dataset]
            replicates = replicate_metrics(outcomes, self.metrics, resamples)
            for name, value in compute_values(outcomes, self.metrics).items():
                measured[dataset, name] = (value, replicates[name])
        return measured

    def measure(self, calibrator: "Calibrator | None" = None) -> dict[Place, Change]:
        """By test set and metric; of the base itself without a calibrator."""
        changes = {}
        measured = self.base if calibrator is None else self._measure(calibrator)
        for place, (value, replicates) in measured.items():
            base, base_replicates = self.base[place]
            ends = interval(value - base, replicates - base_replicates)
            factor = display_factor(place[1])
            changes[place] = Change(*(factor * x for x in (value, value - base, *ends)))
        return changes


def draw_views(data: "FigureData") -> Any:
    """A panel a test set: what each view alone and all together change, from the base."""
    from rightly.reporting.figures.studies import Bars, draw_bars
    from rightly.reporting.figures.style import make_panels, strip_inner_labels

    assert data.cal is not None
    names = data.cal[0].view_names
    choices: dict[str, tuple[str, ...]] = {view: (view,) for view in names}
    if len(choices) > 1:
        choices["all views"] = names
    changes = _ChangesFromBase(data, [data.metric])
    measured = [changes.measure(changes.fit(data.method, views)) for views in choices.values()]
    axes, columns = make_panels(len(data.tests), 2, height=1.2 + 0.21 * len(choices))
    for i, (ax, dataset) in enumerate(zip(axes, data.tests, strict=True)):
        values = np.array([one[dataset, data.metric] for one in measured])
        bars = Bars(list(choices), values[:, 1], values[:, 2], values[:, 3])
        label = f"change of {_label(data.metric)}:\n{data.method}\nfrom {REFERENCE}"
        draw_bars(bars, ax, dataset, label)
        if i % columns:
            ax.set_yticklabels([])
    strip_inner_labels(axes, columns)
    return axes[0]


def draw_budget(data: "FigureData") -> Any:
    """A row a test set: metrics against forward passes, with one more view at each step."""
    from rightly.reporting.figures.studies import draw_cost_curve
    from rightly.reporting.figures.style import make_grid

    assert data.cal is not None
    names = data.cal[0].view_names
    changes = _ChangesFromBase(data, COST_METRICS)
    steps = [changes.measure()]
    for k in range(1, len(names) + 1):
        steps.append(changes.measure(changes.fit(data.method, names[:k])))
    grid = make_grid(len(data.tests), len(COST_METRICS), height=2.0)
    cost = np.arange(1.0, len(steps) + 1)
    for row, dataset in zip(grid, data.tests, strict=True):
        for ax, metric in zip(row, COST_METRICS, strict=True):
            values = np.array([step[dataset, metric] for step in steps])
            # The interval of the difference from one pass, drawn around the value itself.
            low, high = (values[0, 0] + values[:, end] for end in (2, 3))
            draw_cost_curve(cost, values[:, 0], low, high, ax, dataset, _label(metric))
    for ax in grid[:-1].flat:
        ax.set_xlabel("")
    return grid.flat[0]


def draw_view_costs(costs: "Sequence[ViewCost]") -> Any:
    """A panel a metric, against the mean forward passes that budgets take."""
    from rightly.reporting.figures.studies import draw_cost_curve
    from rightly.reporting.figures.style import finish, make_grid

    grid = make_grid(1, len(COST_METRICS), 2.4)
    passes = np.array([cost.passes for cost in costs])
    for ax, metric in zip(grid.flat, COST_METRICS, strict=True):
        shown = display_factor(metric) * np.array([getattr(cost, metric) for cost in costs])
        draw_cost_curve(passes, shown, shown, shown, ax, label=_label(metric))
    finish(grid.flat[0].figure)
    return grid.flat[0]


def draw_values(data: "FigureData") -> Any:
    """A panel a test set: one metric of every calibrator that was compared."""
    from rightly.reporting.figures.studies import Bars, draw_bars
    from rightly.reporting.figures.style import make_panels, strip_inner_labels

    results = [row for row in data.results if row.metric == data.metric]
    if not results:
        measured = ", ".join(unique(row.metric for row in data.results))
        raise ValueError(f"metric must be one that was measured, {measured}, got {data.metric!r}")
    means, factor = average_seeds(results), display_factor(data.metric)
    intervals = {row[:3]: (row.low, row.high) for row in results}
    sets = unique(row.dataset for row in results)
    names = unique(row.calibrator for row in results)
    axes, columns = make_panels(len(sets), 2, height=1.0 + 0.21 * len(names))
    for i, (ax, dataset) in enumerate(zip(axes, sets, strict=True)):
        keys = [(name, dataset, data.metric) for name in names]
        value = factor * np.array([means[key] for key in keys])
        ends = factor * np.array([intervals[key] for key in keys])
        # Without intervals the ends are the value itself.
        low, high = (np.where(np.isnan(end), value, end) for end in ends.T)
        draw_bars(Bars(names, value, low, high), ax, dataset, _label(data.metric))
        if i % columns:
            ax.set_yticklabels([])
    strip_inner_labels(axes, columns)
    return axes[0]


def _label(metric: str) -> str:
    record = METRICS[metric]
    return f"{record.title}, {record.unit}"
