"""Prediction sets by split conformal prediction: classes that hold the true one so often."""

from rightly.calibrators.conformal.quantiles import coverage_interval as coverage_interval
from rightly.calibrators.conformal.quantiles import samples_needed as samples_needed
from rightly.calibrators.conformal.scores import SET_SCORES as SET_SCORES
from rightly.calibrators.conformal.sets import ConformalSets as ConformalSets
