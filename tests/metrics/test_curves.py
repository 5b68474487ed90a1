"""The numbers behind figures, against the metrics and against counting by hand."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from rightly import metrics
from rightly.decisions import Decision
from rightly.metrics import curves


@pytest.fixture(params=[None, 1])
def pair(request):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.2, 1, 500)
    correct = rng.random(500) < confidence - 0.1
    return (confidence if request.param is None else confidence.round(request.param)), correct


def test_reliability_counts_bins_and_adds_up_to_the_ece(pair):
    data = curves.reliability(*pair, bins=25)
    filled = data.count > 0
    gaps = abs(data.confidence - data.accuracy)[filled]
    assert (data.count[filled] * gaps).sum() / 500 == pytest.approx(metrics.ece(*pair))
    assert data.count.sum() == 500 and len(data.edges) == 26
    assert (data.low[filled] <= data.accuracy[filled]).all()
    assert (data.accuracy[filled] <= data.high[filled]).all()
    assert np.isnan(data.low[~filled]).all()
    assert data.ece == pytest.approx(metrics.ece(*pair), abs=1e-12)


def test_the_means_of_an_empty_bin_are_nan():
    confidence = [0.95, 0.9, 0.85, 0.8, 0.6, 0.55, 0.4, 0.3]
    data = curves.reliability(confidence, np.array([1, 1, 0, 1, 0, 1, 0, 0], dtype=bool), bins=4)
    assert data.count.tolist() == [0, 2, 2, 4]
    assert data.confidence == pytest.approx([math.nan, 0.35, 0.575, 0.875], nan_ok=True)
    assert data.accuracy == pytest.approx([math.nan, 0, 0.5, 0.75], nan_ok=True)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (3, 10), (90, 100)])
def test_the_interval_of_a_share_is_wilsons(right, n):
    low, high = curves.wilson(np.array([right / n]), np.array([float(n)]))
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_smooth_reliability_follows_the_law_that_drew_it():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.2, 1, 40_000)
    data = curves.smooth_reliability(confidence, rng.random(40_000) < confidence**2, 100)
    middle = (data.confidence > 0.3) & (data.confidence < 0.9)
    np.testing.assert_allclose(data.accuracy[middle], data.confidence[middle] ** 2, atol=0.03)
    assert ((data.low <= data.accuracy) & (data.accuracy <= data.high)).mean() > 0.97
    assert data.confidence.min() > 0.19
    again = curves.smooth_reliability(confidence, rng.random(40_000) < confidence**2, 10)
    assert again.width == pytest.approx(data.width)


def test_the_roc_is_counted_at_every_threshold(pair):
    confidence, correct = pair
    data = curves.roc(*pair)
    thresholds = [2.0, *sorted(set(confidence.tolist()), reverse=True)]
    np.testing.assert_allclose(data.wrong, [(confidence[~correct] >= t).mean() for t in thresholds])
    np.testing.assert_allclose(data.right, [(confidence[correct] >= t).mean() for t in thresholds])
    assert data.auroc == pytest.approx(metrics.auroc(*pair))
    assert math.isnan(curves.roc(pair[0], np.ones(500, dtype=bool)).auroc)


def test_risk_and_coverage_are_what_a_threshold_gives(pair):
    data = curves.risk_coverage(*pair)
    for i in (0, 5, len(data.threshold) - 1):
        point = Decision.at(float(data.threshold[i]), *pair)
        assert data.coverage[i] == pytest.approx(point.coverage)
        assert data.risk[i] == pytest.approx(1 - point.accuracy)
    assert data.coverage[-1] == 1 and data.risk[-1] == pytest.approx(1 - pair[1].mean())


def test_the_histogram_counts_right_and_wrong(pair):
    data = curves.histogram(*pair)
    assert (data.right.sum(), data.wrong.sum()) == (pair[1].sum(), (~pair[1]).sum())
    top = (pair[0] > 0.95) & pair[1]
    assert data.right[-1] == top.sum()


def test_the_ks_curves_are_as_far_apart_as_ks(pair):
    data = curves.ks_curve(*pair)
    assert data.ks == pytest.approx(metrics.ks(*pair))
    assert abs(data.confidence - data.accuracy).max() == pytest.approx(data.ks)
    assert data.confidence[-1] == pytest.approx(pair[0].mean())
    assert data.accuracy[-1] == pytest.approx(pair[1].mean())


def test_the_temperature_band_is_quantiles_in_bins():
    raw = np.repeat([0.31, 0.62, 0.93], [100, 100, 2])
    temperature = np.concatenate([np.arange(100.0), np.full(100, 2.0), [9.0, 9.0]])
    band = curves.temperature_band(raw, temperature)
    np.testing.assert_allclose(band.confidence, [0.31, 0.62])  # two samples make no band
    np.testing.assert_allclose(band.median, [49.5, 2])
    np.testing.assert_allclose([band.low[0], band.high[0]], [9.9, 89.1])
