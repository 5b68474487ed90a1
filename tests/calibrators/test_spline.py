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


def test_each_sample_is_corrected_by_the_slope_at_its_own_rank():
    s = np.array([0.55, 0.6, 0.7, 0.8, 0.9, 0.95])
    predictions = Predictions(np.stack([np.log(s), np.log(1 - s)], 1))
    labels = np.array([0, 1, 0, 1, 0, 0])
    gap = np.append(0.0, np.cumsum((labels == 0) - s)) / 6
    # Seven points and as many knots: the spline passes through all of them.
    slope = CubicSpline(np.arange(7) / 6, gap, bc_type="natural").derivative()
    fitted = rightly.calibrator("spline", knots=7).fit(predictions, labels)
    expected = np.clip(s + slope(np.arange(1, 7) / 6), 0, 1)
    np.testing.assert_allclose(fitted.confidence(predictions), expected, atol=1e-9)
