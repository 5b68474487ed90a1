"""Temperatures, bars and costs draw the numbers they are given."""

import numpy as np

from rightly.metrics import curves
from rightly.reporting import figures
from tests.reporting.figures.test_calibration import line


def test_temperature_bars_and_costs_draw_their_numbers():
    rng = np.random.default_rng(0)
    band = curves.temperature_band(rng.uniform(0.2, 1, 500), rng.uniform(1, 2, 500))
    ax = figures.draw_temperature({"one": band})
    np.testing.assert_allclose(line(ax, 1), [band.confidence, band.median])
    value, low, high = np.array([1.0, -2.0]), np.array([0.5, -3.0]), np.array([1.5, -1.0])
    ax = figures.draw_bars(figures.Bars(["a", "b"], value, low, high))
    assert [patch.get_width() for patch in ax.patches] == [1.0, -2.0]
    ax = figures.draw_cost_curve(np.array([1.0, 2.0]), value, low, high)
    np.testing.assert_allclose(line(ax, 0), [[1, 2], value])
