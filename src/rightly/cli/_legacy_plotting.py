"""Figures of `rightly plot`, until they move to rightly.reporting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.calibrators import Calibrator, load_calibrator
from rightly.cli.inputs import read_data_set, read_test_sets, split_names
from rightly.evaluation.measurement import (
    TestSets,
    fitted_by,
    metric,
    scored,
    uncalibrated,
    values_of,
)
from rightly.evaluation.view_cost import METRICS as COST_METRICS
from rightly.evaluation.view_cost import Point
from rightly.metrics import METRICS, curves
from rightly.metrics import bootstrap as intervals
from rightly.predictions import Predictions
from rightly.reporting.tables import IN_NATURAL_UNITS

BEFORE = "uncalibrated"
BASE = "temperature_scaling"
BUDGET = ("brier", "auroc", "ece")


@dataclass(frozen=True)
class FigureOptions:
    """What the command line says about a figure."""

    kind: str
    calibrator: Sequence[Path]
    methods: str
    cal: Path | None
    on: Sequence[str]
    views: str | None
    bins: int
    metric: str
    resamples: int
    fit_seed: int
    bootstrap_seed: int


def draw(chosen: FigureOptions) -> Any:
    """Draws a figure and returns its axes."""
    return DRAW[chosen.kind](chosen)


Said = Mapping[tuple[str, str], Outcomes]  # by test set and calibrator


def _said(chosen: FigureOptions) -> Said:
    tests, calibrators = _tests(chosen), _fitted(chosen)
    return {
        (dataset, name): scored(fitted, fitted.select_views(test), truth, ["brier"])
        for dataset, (test, truth) in tests.items()
        for name, fitted in calibrators.items()
    }


def _tests(chosen: FigureOptions) -> TestSets:
    if not chosen.on:
        raise ValueError(f"plot {chosen.kind} needs a test set: add --on FILE")
    return read_test_sets(chosen.on, split_names(chosen.views))


def _fitted(chosen: FigureOptions) -> dict[str, Calibrator]:
    """The calibrators named or loaded; before those loaded, the classifier's own confidence."""
    if chosen.methods and not chosen.cal:
        raise ValueError("--methods needs --cal, the predictions to fit them on")
    names = split_names(chosen.methods)
    if not names and not chosen.calibrator:
        raise ValueError("give --calibrator FILE, or --methods NAMES with --cal FILE")
    found: dict[str, Calibrator] = {}
    if names and chosen.cal:
        data = read_data_set(chosen.cal, split_names(chosen.views))
        found = {name: fitted_by(name, *data, seed=chosen.fit_seed) for name in names}
    for path in chosen.calibrator:
        loaded = load_calibrator(path)
        title = loaded.title if loaded.title not in found else Path(path).stem
        if title in found:
            raise ValueError(f"--calibrator needs different names, got {title!r} twice: rename one")
        found[title] = loaded
    if chosen.calibrator and BEFORE not in found:
        first, labels = next(iter(_tests(chosen).values()))
        found = {BEFORE: uncalibrated(first, labels), **found}
    return found


def _panels(
    said: Said, draw: Callable[[Outcomes, Any, str], Any], height: float | None = None
) -> Any:
    """One panel a test set (rows) and calibrator (columns); one set alone fills rows of three."""
    from rightly.reporting.figures import grid_of

    sets, names = ({key[i]: None for key in said} for i in (0, 1))
    columns = len(names) if len(sets) > 1 else min(len(names), 3)
    grid = grid_of(-(-len(said) // columns), columns, height)
    for ax in grid.flat[len(said) :]:
        ax.axis("off")
    for i, ((dataset, name), one) in enumerate(said.items()):
        ax = grid.flat[i]
        draw(one, ax, f"{name}\n{dataset}")
        if i % columns:
            ax.set_ylabel("")
        if i + columns < len(said):
            ax.set_xlabel("")
    return grid.flat[0]


def _by_set(said: Said, draw: Callable[[dict[str, Outcomes], Any, str], Any]) -> Any:
    """One panel a test set, with all calibrators in it."""
    from rightly.reporting.figures import grid_of

    sets = list(dict.fromkeys(dataset for dataset, _ in said))
    columns = min(len(sets), 2)
    grid = grid_of(-(-len(sets) // columns), columns, height=3.0)
    for ax in grid.flat[len(sets) :]:
        ax.axis("off")
    for ax, dataset in zip(grid.flat, sets, strict=False):
        draw({name: one for (at, name), one in said.items() if at == dataset}, ax, dataset)
    return grid.flat[0]


def _reliability(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import reliability_diagram

    def draw(one: Outcomes, ax: Any, title: str) -> None:
        data = curves.reliability(one.confidence, one.correct, chosen.bins)
        ece = METRICS["ece"].measure(one.confidence, one.correct)
        reliability_diagram(data, ax, title, f"ECE {100 * ece:.1f} %")

    return _panels(_said(chosen), draw)


def _smooth(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import smooth_reliability_diagram

    def draw(one: Outcomes, ax: Any, title: str) -> None:
        data = curves.smooth_reliability(
            one.confidence, one.correct, min(chosen.resamples, 400), chosen.bootstrap_seed
        )
        error = METRICS["smooth_ece"].measure(one.confidence, one.correct)
        smooth_reliability_diagram(data, ax, title, f"smooth ECE {100 * error:.1f} %")

    return _panels(_said(chosen), draw)


def _histogram(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import confidence_histogram

    return _panels(
        _said(chosen),
        lambda one, ax, title: confidence_histogram(
            curves.histogram(one.confidence, one.correct), ax, title
        ),
        height=2.0,
    )


def _ks(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import ks_curves

    return _panels(
        _said(chosen),
        lambda one, ax, title: ks_curves(curves.ks_curve(one.confidence, one.correct), ax, title),
    )


def _roc(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import correctness_roc

    return _by_set(
        _said(chosen),
        lambda some, ax, title: correctness_roc(
            {name: curves.roc(one.confidence, one.correct) for name, one in some.items()}, ax, title
        ),
    )


def _risk_coverage(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import risk_coverage_curves

    return _by_set(
        _said(chosen),
        lambda some, ax, title: risk_coverage_curves(
            {name: curves.risk_coverage(x.confidence, x.correct) for name, x in some.items()},
            ax,
            title,
        ),
    )


def _temperature(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import grid_of, temperature_curves

    tests, fitted = _tests(chosen), _fitted(chosen)
    grid = grid_of(1, len(tests), height=2.6)
    for ax, (dataset, (test, _)) in zip(grid.flat, tests.items(), strict=True):
        raw = test.confidence.cpu().numpy()
        bands = {
            name: curves.temperature_band(
                raw, one.temperature(one.select_views(test)).cpu().numpy()
            )
            for name, one in fitted.items()
            if name != BEFORE
        }
        temperature_curves(bands, ax, dataset)
    return grid.flat[0]


def _view_choices(chosen: FigureOptions) -> tuple[Predictions, Any, TestSets, str]:
    """Calibration data, test sets and the one method that reads views."""
    if not chosen.cal:
        raise ValueError(f"plot {chosen.kind} needs --cal, the predictions to fit on")
    names = split_names(chosen.methods) or ["rightly"]
    if len(names) > 1:
        raise ValueError(f"plot {chosen.kind} draws one method, got --methods {chosen.methods}")
    predictions, labels = read_data_set(chosen.cal, split_names(chosen.views))
    if predictions.view_logits is None:
        raise ValueError(f"plot {chosen.kind} needs views, but {chosen.cal} has none")
    return predictions, labels, _tests(chosen), names[0]


@dataclass(frozen=True)
class Change:
    """A value, and the interval of its difference from that of a base, in printed units."""

    value: float
    change: float
    low: float
    high: float


class _AgainstBase:
    """Measures calibrators on the same resamples as one that needs no views."""

    def __init__(
        self,
        predictions: Predictions,
        labels: Any,
        tests: TestSets,
        metrics: Sequence[str],
        chosen: FigureOptions,
    ) -> None:
        self.tests, self.metrics = tests, metrics
        self.resamples = {
            name: intervals.draw(len(test), chosen.resamples, chosen.bootstrap_seed)
            for name, (test, _) in tests.items()
        }
        self.base = self._measured(fitted_by(BASE, predictions, labels))

    def _measured(self, fitted: AnyCalibrator) -> dict[tuple[str, str], tuple[float, np.ndarray]]:
        found = {}
        for dataset, (test, truth) in self.tests.items():
            one = scored(fitted, fitted.select_views(test), truth, self.metrics)
            resampled = intervals.replicate_metrics(one, self.metrics, self.resamples[dataset])
            for name, value in values_of(one, self.metrics).items():
                found[dataset, name] = (value, resampled[name])
        return found

    def changes(self, fitted: AnyCalibrator | None = None) -> dict[tuple[str, str], Change]:
        """By test set and metric; of the base itself where no calibrator is given."""
        found = {}
        measured = self.base if fitted is None else self._measured(fitted)
        for key, (value, resampled) in measured.items():
            base, base_resampled = self.base[key]
            ends = intervals.interval(value - base, resampled - base_resampled)
            factor = 1 if key[1] in IN_NATURAL_UNITS else 100
            found[key] = Change(*(factor * x for x in (value, value - base, *ends)))
        return found


def _views(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import Bars, grid_of, view_bars

    predictions, labels, tests, name = _view_choices(chosen)
    metric(chosen.metric)
    against = _AgainstBase(predictions, labels, tests, [chosen.metric], chosen)
    choices: dict[str, tuple[str, ...]] = {view: (view,) for view in predictions.view_names}
    if len(choices) > 1:
        choices["all views"] = predictions.view_names
    rows = {
        title: against.changes(
            fitted_by(name, predictions.with_views(views), labels, chosen.fit_seed)
        )
        for title, views in choices.items()
    }
    grid = grid_of(1, len(tests), height=0.8 + 0.21 * len(rows))
    for ax, dataset in zip(grid.flat, tests, strict=True):
        found = [row[dataset, chosen.metric] for row in rows.values()]
        values = np.array([[one.change, one.low, one.high] for one in found])
        bars = Bars(list(rows), values[:, 0], values[:, 1], values[:, 2])
        label = f"change of {chosen.metric}{_times(chosen.metric)},\n{name} from {BASE}"
        view_bars(bars, ax, dataset, label)
        if ax is not grid.flat[0]:
            ax.set_yticklabels([])
    return grid.flat[0]


def _budget(chosen: FigureOptions) -> Any:
    from rightly.reporting.figures import budget_curve, grid_of

    predictions, labels, tests, name = _view_choices(chosen)
    against = _AgainstBase(predictions, labels, tests, BUDGET, chosen)
    steps = [against.changes()]
    for k in range(1, len(predictions.view_names) + 1):
        some = predictions.with_views(predictions.view_names[:k])
        steps.append(against.changes(fitted_by(name, some, labels, chosen.fit_seed)))
    grid = grid_of(len(tests), len(BUDGET), height=2.0)
    cost = np.arange(1.0, len(steps) + 1)
    for row, dataset in zip(grid, tests, strict=True):
        for ax, key in zip(row, BUDGET, strict=True):
            found = [step[dataset, key] for step in steps]
            value = np.array([one.value for one in found])
            # The interval of the difference from one pass, drawn around the value itself.
            low, high = (
                value[0] + np.array([getattr(one, end) for one in found]) for end in ("low", "high")
            )
            budget_curve(cost, value, low, high, ax, dataset, f"{key}{_times(key)}")
    for ax in grid[:-1].flat:
        ax.set_xlabel("")
    return grid.flat[0]


def _times(key: str) -> str:
    return "" if key in IN_NATURAL_UNITS else ", times 100"


DRAW: dict[str, Callable[[FigureOptions], Any]] = {
    "reliability": _reliability,
    "smooth": _smooth,
    "roc": _roc,
    "risk-coverage": _risk_coverage,
    "histogram": _histogram,
    "ks": _ks,
    "temperature": _temperature,
    "views": _views,
    "budget": _budget,
}


def plot_budget(points: Sequence[Point], path: Path) -> None:
    from rightly.reporting import figures as plots

    panels = plots.grid_of(1, len(COST_METRICS), 2.4)[0]
    passes = np.array([point.passes for point in points])
    for ax, name in zip(panels, COST_METRICS, strict=True):
        values = 100 * np.array([getattr(point, name) for point in points])
        plots.budget_curve(passes, values, values, values, ax, label=f"{name} x 100")
    plots.save(panels[0], path)
