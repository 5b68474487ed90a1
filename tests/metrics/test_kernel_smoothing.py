"""Smoothing on [0, 1] against SciPy's filter, and the width against its definition."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from rightly.metrics import binning

CELLS = binning.CELLS


def test_smoothing_keeps_mass_and_matches_a_filter_that_mirrors():
    mass = np.random.default_rng(0).random((3, CELLS))
    widths = np.array([0.01, 0.05, 0.3])
    smooth = binning.smooth(mass, widths)
    np.testing.assert_allclose(smooth.sum(-1), mass.sum(-1))
    for row, width, result in zip(mass, widths, smooth, strict=True):
        expected = gaussian_filter1d(row, width * CELLS, mode="reflect", truncate=8)
        np.testing.assert_allclose(result, expected, atol=1e-10)


def test_every_row_has_the_width_that_its_smoothed_excess_sums_to():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, CELLS)) / (CELLS * np.array([[1], [10], [100], [1000]]))
    excess = np.concatenate([noise, np.zeros((1, CELLS)), np.full((1, CELLS), 0.2 / CELLS)])
    width = binning.fixed_point_bandwidth(excess)
    smooth = binning.smooth(excess, width)
    np.testing.assert_allclose(abs(smooth).sum(-1), width, atol=1e-8)
    assert width[4:] == pytest.approx([0, 0.2], abs=1e-8)


def test_cells_are_those_of_a_histogram_and_the_last_is_closed():
    levels = np.unique(np.append(np.random.default_rng(2).random(300), [0.0, 1.0]))
    counts, _ = np.histogram(levels, np.arange(CELLS + 1) / CELLS)
    index = binning.assign_cells(levels)
    np.testing.assert_array_equal(np.bincount(index, minlength=CELLS), counts)
    np.testing.assert_array_equal(np.diff(binning.cell_ends(levels)), counts)
