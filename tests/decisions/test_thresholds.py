"""Thresholds: the lowest that reaches an accuracy, and what accepting from one means."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rightly.decisions import exact_interval, operating_point, threshold_for_accuracy

samples = st.lists(
    st.tuples(st.integers(0, 8).map(lambda i: i / 8), st.booleans()), min_size=1, max_size=30
)


@given(samples, st.sampled_from([0.0, 0.5, 0.8, 1.0]))
def test_the_threshold_is_the_lowest_that_reaches_the_accuracy(pairs, accuracy):
    confidence = np.array([c for c, _ in pairs])
    correct = np.array([a for _, a in pairs])
    reaching = [
        t for t in np.unique(confidence) if correct[confidence >= t].mean() >= accuracy - 1e-15
    ]
    if not reaching:
        with pytest.raises(ValueError, match="accuracy must be one that some threshold reaches"):
            threshold_for_accuracy(confidence, correct, accuracy)
        return
    assert threshold_for_accuracy(confidence, correct, accuracy) == min(reaching)


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


def test_an_accuracy_out_of_reach_is_answered_by_the_best_there_is():
    confidence, correct = [0.9, 0.8, 0.7, 0.7], np.array([False, True, True, True])
    with pytest.raises(ValueError, match="highest is 0.7500, at the threshold 0.7000 with 4"):
        threshold_for_accuracy(confidence, correct, 0.8)


@pytest.mark.parametrize("share", [1.5, -0.1, float("nan"), True, "0.9"])
def test_shares_outside_0_to_1_are_refused_by_name(share, monkeypatch):
    # Users run without the type checker of these tests, which would refuse some of these first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="accuracy must be a number from 0 to 1, got"):
        threshold_for_accuracy([0.5], np.array([True]), share)
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1, got"):
        operating_point([0.5], np.array([True]), share)
