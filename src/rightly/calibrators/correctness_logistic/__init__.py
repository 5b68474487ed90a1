"""Rightly's own calibrator: logistic regression of correctness on log-odds of image and views."""

from rightly.calibrators.correctness_logistic.calibrator import (
    CorrectnessLogistic as CorrectnessLogistic,
)
