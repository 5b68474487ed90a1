"""Figures. Each `draw_` function draws what `rightly.metrics.curves` computes, returning its axes.

Colours are told apart by people who are colour-blind, and lines also by dashes and markers, so
that figures survive a grey printer. `draw_figure` draws a kind of figure from calibrators and test
sets. Needs matplotlib: pip install 'rightly[plots]'; it is loaded when something is drawn.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.reporting.figures.calibration import draw_histogram as draw_histogram
    from rightly.reporting.figures.calibration import draw_ks as draw_ks
    from rightly.reporting.figures.calibration import draw_reliability as draw_reliability
    from rightly.reporting.figures.calibration import (
        draw_smooth_reliability as draw_smooth_reliability,
    )
    from rightly.reporting.figures.differences import draw_view_costs as draw_view_costs
    from rightly.reporting.figures.kinds import FIGURES as FIGURES
    from rightly.reporting.figures.kinds import Figure as Figure
    from rightly.reporting.figures.kinds import FigureData as FigureData
    from rightly.reporting.figures.kinds import draw_figure as draw_figure
    from rightly.reporting.figures.kinds import include_uncalibrated as include_uncalibrated
    from rightly.reporting.figures.ranking import draw_risk_coverage as draw_risk_coverage
    from rightly.reporting.figures.ranking import draw_roc as draw_roc
    from rightly.reporting.figures.studies import Bars as Bars
    from rightly.reporting.figures.studies import draw_bars as draw_bars
    from rightly.reporting.figures.studies import draw_cost_curve as draw_cost_curve
    from rightly.reporting.figures.studies import draw_temperature as draw_temperature
    from rightly.reporting.figures.style import FORMATS as FORMATS
    from rightly.reporting.figures.style import finish as finish
    from rightly.reporting.figures.style import make_grid as make_grid
    from rightly.reporting.figures.style import save as save

# What each kind of figure shows: light, so that the help of commands can list them.
DESCRIPTIONS = {
    "reliability": "accuracy against confidence in bins, with intervals",
    "smooth": "accuracy as a smooth function of confidence, with a band",
    "roc": "right samples accepted against wrong ones accepted",
    "risk-coverage": "error rate among accepted samples against their share",
    "histogram": "confidence of right and of wrong samples",
    "ks": "cumulative confidence and accuracy, whose largest distance is KS",
    "temperature": "temperature against uncalibrated confidence",
    "steps": "reliability over the steps of a stream, before and after adapting",
    "views": "what each view changes, with paired intervals",
    "budget": "brier, auroc and ece against forward passes",
    "values": "one metric of all methods compared, with intervals",
}

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "calibration": ("draw_histogram", "draw_ks", "draw_reliability", "draw_smooth_reliability"),
        "differences": ("draw_view_costs",),
        "kinds": ("FIGURES", "Figure", "FigureData", "draw_figure", "include_uncalibrated"),
        "ranking": ("draw_risk_coverage", "draw_roc"),
        "studies": ("Bars", "draw_bars", "draw_cost_curve", "draw_temperature"),
        "style": ("FORMATS", "finish", "make_grid", "save"),
    },
)
