"""Figures. Each function draws what `rightly.metrics.curves` computes on an `ax` and returns it.

Colours are told apart by people who are colour-blind, and lines also by dashes and markers, so
that figures survive a grey printer. Needs matplotlib: pip install 'rightly[plots]'.
"""

from rightly.reporting.figures.calibration import confidence_histogram as confidence_histogram
from rightly.reporting.figures.calibration import ks_curves as ks_curves
from rightly.reporting.figures.calibration import reliability_diagram as reliability_diagram
from rightly.reporting.figures.calibration import (
    smooth_reliability_diagram as smooth_reliability_diagram,
)
from rightly.reporting.figures.ranking import correctness_roc as correctness_roc
from rightly.reporting.figures.ranking import risk_coverage_curves as risk_coverage_curves
from rightly.reporting.figures.studies import Bars as Bars
from rightly.reporting.figures.studies import budget_curve as budget_curve
from rightly.reporting.figures.studies import temperature_curves as temperature_curves
from rightly.reporting.figures.studies import view_bars as view_bars
from rightly.reporting.figures.style import FORMATS as FORMATS
from rightly.reporting.figures.style import grid_of as grid_of
from rightly.reporting.figures.style import save as save
