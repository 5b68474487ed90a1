"""Thresholds: what accepting from one means."""

import jaxtyping
import numpy as np
import pytest
from scipy.stats import binomtest

from rightly.decisions import exact_interval, operating_point


def test_an_operating_point_counts_what_is_accepted():
    point = operating_point([0.2, 0.5, 0.5, 0.9], np.array([False, True, False, True]), 0.5)
    assert (point.accepted, point.coverage) == (3, 0.75)
    assert point.accuracy == pytest.approx(2 / 3)
    assert point.as_dict()["threshold"] == 0.5


def test_nothing_accepted_has_no_accuracy():
    point = operating_point([0.2], np.array([True]), 0.5)
    assert point.accepted == 0 and np.isnan(point.accuracy)
    assert point.as_dict()["accuracy"] is None


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (8, 10), (979, 1000)])
def test_the_interval_is_scipys_exact_one(right, n):
    expected = binomtest(right, n).proportion_ci(method="exact")
    assert exact_interval(right, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("share", [1.5, -0.1, float("nan"), True, "0.9"])
def test_shares_outside_0_to_1_are_refused_by_name(share, monkeypatch):
    # Users run without the type checker of these tests, which would refuse some of these first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="threshold must be a fraction in .0, 1., got"):
        operating_point([0.5], np.array([True]), share)
