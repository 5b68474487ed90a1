"""Reliability diagrams, histograms and KS curves draw the numbers they are given."""

import numpy as np
import pytest

from rightly.metrics import curves
from rightly.reporting import figures


@pytest.fixture
def pair():
    return make_pair()


def make_pair():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.2, 1, 400)
    return confidence, rng.random(400) < confidence - 0.1


def line(ax, i):
    return ax.lines[i].get_xdata(), ax.lines[i].get_ydata()


def test_a_reliability_diagram_shows_bins_intervals_and_counts(pair):
    data = curves.reliability(*pair)
    ax = figures.draw_reliability(data, note="a note")
    held = data.count > 0
    np.testing.assert_array_equal(line(ax, 0), [[0, 1], [0, 1]])
    np.testing.assert_allclose(line(ax, 1), [data.confidence[held], data.accuracy[held]])
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([data.low[held], data.high[held]], 1))
    (below,) = ax.child_axes
    assert [patch.get_height() for patch in below.patches] == data.count.tolist()
    assert ax.texts[0].get_text() == "a note"


def test_a_smooth_diagram_shows_curve_and_band(pair):
    data = curves.smooth_reliability(*pair, 50)
    ax = figures.draw_smooth_reliability(data)
    np.testing.assert_allclose(line(ax, 1), [data.confidence, data.accuracy])
    (band,) = ax.collections
    edge = band.get_paths()[0].vertices
    assert edge[:, 1].min() == pytest.approx(data.low.min())
    assert edge[:, 1].max() == pytest.approx(data.high.max())


def test_a_histogram_shows_right_above_and_wrong_below(pair):
    data = curves.histogram(*pair)
    ax = figures.draw_histogram(data)
    heights = [[patch.get_height() for patch in group] for group in ax.containers]
    np.testing.assert_allclose(heights[0], 100 * data.right / data.right.sum())
    np.testing.assert_allclose(heights[1], -100 * data.wrong / data.wrong.sum())


def test_ks_curves_show_their_largest_distance(pair):
    ks = curves.ks_curve(*pair)
    ax = figures.draw_ks(ks)
    np.testing.assert_allclose(line(ax, 0), [ks.share, ks.confidence])
    np.testing.assert_allclose(line(ax, 1), [ks.share, ks.accuracy])
    np.testing.assert_allclose(np.ptp(line(ax, 2)[1]), ks.ks)
    assert ax.texts[0].get_text() == f"KS {100 * ks.ks:.1f} %"
