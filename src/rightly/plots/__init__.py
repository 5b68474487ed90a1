"""Figures. Each function draws what `rightly.curves` computes on an `ax` and returns it.

Colours are told apart by people who are colour-blind, and lines also by dashes and markers, so
that figures survive a grey printer. Needs matplotlib: pip install 'rightly[plots]'.
"""

from rightly.plots.calibration import confidence_histogram as confidence_histogram
from rightly.plots.calibration import ks_curves as ks_curves
from rightly.plots.calibration import reliability_diagram as reliability_diagram
from rightly.plots.calibration import smooth_reliability_diagram as smooth_reliability_diagram
from rightly.plots.ranking import correctness_roc as correctness_roc
from rightly.plots.ranking import risk_coverage_curves as risk_coverage_curves
from rightly.plots.studies import Bars as Bars
from rightly.plots.studies import budget_curve as budget_curve
from rightly.plots.studies import loss_curves as loss_curves
from rightly.plots.studies import loss_surface as loss_surface
from rightly.plots.studies import temperature_curves as temperature_curves
from rightly.plots.studies import view_bars as view_bars
from rightly.plots.style import FORMATS as FORMATS
from rightly.plots.style import grid_of as grid_of
from rightly.plots.style import save as save
