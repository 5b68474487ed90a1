"""Kinds of figures by name, from calibrators and test sets: what `plot` draws.

Neither torch nor matplotlib is loaded before a figure is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rightly.checks import check_choice
from rightly.evaluation.results import Result
from rightly.metrics import METRICS, Outcomes, curves
from rightly.reporting.figures import DESCRIPTIONS
from rightly.reporting.figures.differences import draw_budget, draw_values, draw_views
from rightly.reporting.formatting import format_percent

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.evaluation.data_sets import LabelledSet, TestSets

UNCALIBRATED = "uncalibrated"

Needs = Literal["calibrators and tests", "cal with views, and tests", "results"]


@dataclass(frozen=True)
class FigureData:
    """All that some figure is drawn from."""

    tests: "TestSets" = field(default_factory=dict)
    # None is the classifier's own confidence, never adapted.
    calibrators: "Mapping[str, Calibrator | None]" = field(default_factory=dict)
    cal: "LabelledSet | None" = None
    results: Sequence[Result] = ()
    method: str = "correctness_logistic"  # fitted on views
    metric: str = "brier"
    bins: int = 15
    resamples: int = 1000
    seed: int = 0  # of fits and resamples
    adapt: bool | int = False  # calibrators, to each test set or to batches of so many rows


@dataclass(frozen=True)
class Figure:
    """A kind of figure: how to draw it, what it needs, and what it shows."""

    name: str
    draw: Callable[[FigureData], Any]
    needs: Needs = "calibrators and tests"

    @property
    def shows(self) -> str:
        return DESCRIPTIONS[self.name]


def draw_figure(kind: str, data: FigureData) -> Any:
    """Draws a kind of figure and returns its first axes; `.figure` holds them all."""
    check_choice("kind", kind, FIGURES)
    METRICS.find(data.metric)
    figure = FIGURES[kind]
    if figure.needs == "results":
        if not data.results:
            raise ValueError(f"the figure {kind} needs results: compare methods on test sets first")
    elif not data.tests:
        raise ValueError(f"the figure {kind} needs tests: name at least one test set")
    elif figure.needs == "calibrators and tests" and not data.calibrators:
        raise ValueError(f"the figure {kind} needs calibrators: fit or load at least one")
    elif figure.needs == "cal with views, and tests" and (
        data.cal is None or data.cal[0].view_logits is None
    ):
        raise ValueError(
            f"the figure {kind} needs cal, calibration predictions with views and labels, "
            f"got {'none' if data.cal is None else 'predictions without views'}: collect views"
        )
    from rightly.reporting.figures.style import finish

    ax = figure.draw(data)
    finish(ax.figure)
    return ax


def include_uncalibrated(
    calibrators: "Mapping[str, Calibrator | None]",
) -> "dict[str, Calibrator | None]":
    """The calibrators, and before them the classifier's own confidence if it is not among them."""
    own = {} if UNCALIBRATED in calibrators else {UNCALIBRATED: None}
    return {**own, **calibrators}


def _compute_outcomes(data: FigureData) -> dict[tuple[str, str], Outcomes]:
    """By test set and calibrator."""
    from rightly.evaluation.measurement import compute_outcomes

    return {
        (dataset, name): compute_outcomes(
            one, test if one is None else one.select_views(test), truth, ["brier"], data.adapt
        )
        for dataset, (test, truth) in data.tests.items()
        for name, one in data.calibrators.items()
    }


def _draw_each(
    data: FigureData, draw: Callable[[Outcomes, Any, str], Any], height: float | None = None
) -> Any:
    """One panel a test set (rows) and calibrator (columns); one set alone fills rows of three."""
    from rightly.reporting.figures.style import make_panels, strip_inner_labels

    outcomes = _compute_outcomes(data)
    most = len(data.calibrators) if len(data.tests) > 1 else 3
    axes, columns = make_panels(len(outcomes), most, height)
    for ax, ((dataset, name), one) in zip(axes, outcomes.items(), strict=True):
        draw(one, ax, f"{name}\n{dataset}")
    strip_inner_labels(axes, columns)
    return axes[0]


def _draw_together(data: FigureData, draw: Callable[[dict[str, Outcomes], Any, str], Any]) -> Any:
    """One panel a test set, with all calibrators in it."""
    from rightly.reporting.figures.style import make_panels

    outcomes = _compute_outcomes(data)
    axes, _ = make_panels(len(data.tests), 2, height=3.0)
    for ax, dataset in zip(axes, data.tests, strict=True):
        draw({name: outcomes[dataset, name] for name in data.calibrators}, ax, dataset)
    return axes[0]


def _draw_reliability(data: FigureData) -> Any:
    from rightly.reporting.figures.panels import draw_reliability_panel

    return _draw_each(
        data, lambda one, ax, title: draw_reliability_panel(one, ax, title, data.bins)
    )


def _draw_smooth(data: FigureData) -> Any:
    from rightly.reporting.figures.calibration import draw_smooth_reliability

    def draw(one: Outcomes, ax: Any, title: str) -> None:
        resamples = min(data.resamples, 400)
        curve = curves.smooth_reliability(one.confidence, one.correct, resamples, data.seed)
        error = METRICS["smooth_ece"].measure(one.confidence, one.correct)
        draw_smooth_reliability(curve, ax, title, f"smooth ECE {format_percent(error)} %")

    return _draw_each(data, draw)


def _draw_histogram(data: FigureData) -> Any:
    from rightly.reporting.figures.calibration import draw_histogram

    def draw(one: Outcomes, ax: Any, title: str) -> None:
        draw_histogram(curves.histogram(one.confidence, one.correct), ax, title)

    return _draw_each(data, draw, height=2.0)


def _draw_ks(data: FigureData) -> Any:
    from rightly.reporting.figures.calibration import draw_ks

    def draw(one: Outcomes, ax: Any, title: str) -> None:
        draw_ks(curves.ks_curve(one.confidence, one.correct), ax, title)

    return _draw_each(data, draw)


def _draw_roc(data: FigureData) -> Any:
    from rightly.reporting.figures.panels import draw_roc_panel

    return _draw_together(data, draw_roc_panel)


def _draw_risk_coverage(data: FigureData) -> Any:
    from rightly.reporting.figures.panels import draw_risk_coverage_panel

    return _draw_together(data, draw_risk_coverage_panel)


def _draw_temperature(data: FigureData) -> Any:
    import torch

    from rightly.evaluation.measurement import adapt_in_batches
    from rightly.reporting.figures.studies import draw_temperature
    from rightly.reporting.figures.style import make_panels, strip_inner_labels

    axes, columns = make_panels(len(data.tests), 2, height=2.6)
    for ax, (dataset, (test, _)) in zip(axes, data.tests.items(), strict=True):
        raw = test.confidence.cpu().numpy()
        temperatures = {}
        for name, one in data.calibrators.items():
            if one is not None and name != UNCALIBRATED:
                batches = adapt_in_batches(one, one.select_views(test), data.adapt)
                t = torch.cat([adapted.temperature(batch) for adapted, batch in batches])
                temperatures[name] = t.cpu().numpy()
        bands = {name: curves.temperature_band(raw, t) for name, t in temperatures.items()}
        draw_temperature(bands, ax, dataset)
    strip_inner_labels(axes, columns)
    return axes[0]


def _draw_steps(data: FigureData) -> Any:
    from rightly.reporting.figures.steps import draw_steps

    return draw_steps(data)


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("reliability", _draw_reliability),
        Figure("smooth", _draw_smooth),
        Figure("roc", _draw_roc),
        Figure("risk-coverage", _draw_risk_coverage),
        Figure("histogram", _draw_histogram),
        Figure("ks", _draw_ks),
        Figure("temperature", _draw_temperature),
        Figure("steps", _draw_steps),
        Figure("views", draw_views, "cal with views, and tests"),
        Figure("budget", draw_budget, "cal with views, and tests"),
        Figure("values", draw_values, "results"),
    )
}
