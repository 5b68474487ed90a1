"""Smoothing on [0, 1] against SciPy's filter, and the width against its definition."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d

from rightly.metrics import METRICS, Outcomes, Ranks, smooth_ece, smoothing
from rightly.metrics.states import CELLS, assign_cells


def test_smoothing_keeps_mass_and_matches_a_filter_that_mirrors():
    mass = np.random.default_rng(0).random((3, CELLS))
    widths = np.array([0.01, 0.05, 0.3])
    smooth = smoothing.smooth(mass, widths)
    np.testing.assert_allclose(smooth.sum(-1), mass.sum(-1))
    for row, width, result in zip(mass, widths, smooth, strict=True):
        expected = gaussian_filter1d(row, width * CELLS, mode="reflect", truncate=8)
        np.testing.assert_allclose(result, expected, atol=1e-10)


def test_every_row_has_the_width_that_its_smoothed_excess_sums_to():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, CELLS)) / (CELLS * np.array([[1], [10], [100], [1000]]))
    excess = np.concatenate([noise, np.zeros((1, CELLS)), np.full((1, CELLS), 0.2 / CELLS)])
    width = smoothing.fixed_point_bandwidth(excess)
    smooth = smoothing.smooth(excess, width)
    np.testing.assert_allclose(abs(smooth).sum(-1), width, atol=1e-8)
    assert width[4:] == pytest.approx([0, 0.2], abs=1e-8)


# All equal, all right, all wrong, exactly 0 and 1, next to them, and one sample.
EXTREMES = st.sampled_from([0.0, 1e-300, 1e-12, 1e-4, 0.04, 0.5, 0.9991, 1 - 1e-4, 1 - 1e-12, 1.0])
PAIRS = st.lists(st.tuples(EXTREMES, st.booleans()), min_size=1, max_size=60)


@given(PAIRS)
@example([(1 - 1e-4, True)] * 50)
@example([(1.0, True)])
@example([(0.0, True)] * 3)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_smooth_ece_of_extremes_returns_what_a_scan_over_widths_finds(pairs):
    confidence, correct = (np.array(column) for column in zip(*pairs, strict=True))
    excess = np.bincount(
        assign_cells(confidence), weights=confidence - correct, minlength=CELLS
    ) / len(pairs)
    low, high = abs(excess.sum()), abs(excess).sum()

    def sum_minus_width(width):
        deviation = max(width * CELLS, 1e-3)  # the filter divides by it
        smooth = gaussian_filter1d(excess, deviation, mode="reflect", truncate=9)
        return abs(smooth).sum() - width

    width = smooth_ece(confidence, correct)
    assert low - 1e-9 <= width <= high + 1e-9
    scan = np.linspace(low - 1e-8, high + 1e-8, 25)
    crossing = np.flatnonzero(np.diff(np.sign([sum_minus_width(x) for x in scan])))
    assert any(scan[i] - 2e-9 <= width <= scan[i + 1] + 2e-9 for i in crossing)
    assert abs(sum_minus_width(width)) < 1e-8
    rows = np.ones((2, len(pairs)), dtype=np.uint8)
    rows[1, 1:] = 0  # a resample of the first sample alone: all excess lies in one cell
    both = METRICS["smooth_ece"].definition(Ranks(Outcomes(confidence, correct), rows))
    assert both == pytest.approx([width, abs(confidence[0] - correct[0])], abs=1e-8)


def test_a_width_is_exact_where_all_excess_is_on_one_side_or_none_is_left():
    excess = np.zeros((3, CELLS))
    excess[1, 999], excess[2, 10:20] = -0.25, 0.0625
    assert smoothing.fixed_point_bandwidth(excess).tolist() == [0, 0.25, 0.625]
    assert smooth_ece([1.0, 0.0], [True, False]) == 0
