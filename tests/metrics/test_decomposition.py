"""The parts of the Brier score, against a two-class forecast worked out by hand."""

import numpy as np
import pytest

from rightly.metrics import brier_decomposition, multiclass_brier


def test_the_parts_of_a_forecast_with_two_levels():
    # Of five forecasts of 0.8 three come true, of five of 0.2 one does: the frequencies are
    # 0.6 and 0.2 around 0.4. Both classes add the same.
    p = np.repeat([0.8, 0.2], 5)
    labels = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    parts = brier_decomposition(np.stack([1 - p, p], -1), labels)
    assert parts.reliability == pytest.approx(2 * 0.2**2 / 2)
    assert parts.resolution == pytest.approx(2 * 0.2**2)
    assert parts.uncertainty == pytest.approx(2 * 0.4 * 0.6)
    assert parts.within_bins == pytest.approx(0, abs=1e-12)
    assert parts.refinement == pytest.approx(2 * (0.6 * 0.4 + 0.2 * 0.8) / 2)
    assert parts.brier == pytest.approx(parts.reliability + parts.refinement)


@pytest.mark.parametrize("bins", [1, 7, 25])
def test_the_parts_add_up_to_the_score_whatever_the_bins(bins):
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(5), 300), rng.integers(0, 5, 300)
    parts = brier_decomposition(p, labels, bins)
    assert parts.brier == pytest.approx(multiclass_brier(p, labels), abs=1e-12)
    assert parts.brier == pytest.approx(((p - np.eye(5)[labels]) ** 2).sum(-1).mean())
    # With one bin a class there is no resolution, and reliability is of the mean.
    assert (parts.resolution < 1e-12) == (bins == 1)
    calibrated = brier_decomposition(np.full((300, 5), 0.2), np.arange(300) % 5, bins)
    assert calibrated.reliability == pytest.approx(0, abs=1e-12)
    assert calibrated.uncertainty == pytest.approx(0.8) == pytest.approx(calibrated.brier)
