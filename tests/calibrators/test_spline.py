"""The spline: against SciPy and known distortions."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import rightly
from rightly import Predictions
from rightly.calibrators.spline import natural_spline


def test_points_on_the_knots_give_scipys_natural_spline():
    t, values = np.linspace(0, 1, 6), np.random.default_rng(0).normal(size=6)
    expected = CubicSpline(t, values, bc_type="natural")
    found = natural_spline(t, values, 6)
    fine = np.linspace(0, 1, 101)
    np.testing.assert_allclose(found(fine), expected(fine), atol=1e-13)


def test_a_known_distortion_is_learned():
    rng = np.random.default_rng(0)
    s = rng.uniform(0.5, 1, 20_000)
    predictions = Predictions(np.stack([np.log(s), np.log(1 - s)], 1))
    labels = np.where(rng.random(20_000) < s**2, 0, 1)
    fitted = rightly.calibrator("spline").fit(predictions, labels)
    confidence = fitted.confidence(predictions).numpy()
    assert np.abs(confidence - s**2).mean() < 0.015


def test_a_constant_gap_is_a_constant_correction():
    s = np.linspace(0.6, 0.9, 1000)
    predictions = Predictions(np.stack([np.log(s), np.log(1 - s)], 1))
    labels = np.zeros(1000, int)
    labels[::4] = 1
    fitted = rightly.calibrator("spline").fit(predictions, labels)
    assert float(fitted.confidence(predictions).mean()) == pytest.approx(0.75, abs=0.01)
