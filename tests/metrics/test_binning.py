"""Bins: which samples share one, and what each holds."""

import math

import numpy as np
import pytest

from rightly.metrics import binning


def test_bins_are_closed_on_the_right_at_every_edge():
    for bins in (5, 10, 15, 25, 100):
        edges = np.array([float(f"{m / bins:.17g}") for m in range(bins + 1)])
        assert binning.assign_equal_width(edges, bins).tolist() == [0, *range(bins)]
        above = np.nextafter(edges[:-1], 1)
        assert binning.assign_equal_width(above, bins).tolist() == list(range(bins))


def test_quantile_bins_keep_ties_together_and_saturated_values_apart():
    values = np.array([0.2, 0.4, 0.6, 1, 1, 1, 1, 1])  # quartiles 0.55, 1 and 1
    assert binning.assign_quantile(values, 4).tolist() == [0, 0, 1, 3, 3, 3, 3, 3]


def test_quantile_bins_hold_equal_counts_where_nothing_is_tied():
    values = np.random.default_rng(0).permutation(100) / 100
    assert np.bincount(binning.assign_quantile(values, 5)).tolist() == [20] * 5


def test_the_summary_of_an_empty_bin_is_nan():
    confidence = np.array([0.95, 0.9, 0.85, 0.8, 0.6, 0.55, 0.4, 0.3])
    correct = np.array([1, 1, 0, 1, 0, 1, 0, 0], dtype=bool)
    index = binning.assign_equal_width(confidence, 4)
    summary = binning.summarise(confidence, correct, index, 4)
    assert summary.count.tolist() == [0, 2, 2, 4]
    assert summary.confidence == pytest.approx([math.nan, 0.35, 0.575, 0.875], nan_ok=True)
    assert summary.accuracy == pytest.approx([math.nan, 0, 0.5, 0.75], nan_ok=True)
    assert summary.gap() == pytest.approx([math.nan, 0.35, 0.075, 0.125], nan_ok=True)
