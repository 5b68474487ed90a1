"""The threshold of least cost: found by counting, its cost not flattered."""

import numpy as np
import pytest

from rightly import Decision
from rightly.decisions import measure_cost


def draw(n, seed):
    """Calibrated confidence: right with exactly that probability."""
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, rng.random(n) < confidence


def count_cost(confidence, correct, threshold, error, review, gain):
    accepted = confidence >= threshold
    wrong, right = (accepted & ~correct).sum(), (accepted & correct).sum()
    return 1000 * (error * wrong - gain * right + review * (~accepted).sum()) / len(correct)


def test_no_threshold_costs_less_on_the_samples():
    confidence, correct = draw(60, 0)
    found = Decision.least_cost(confidence, correct, error=10, review=1, gain=0.5)
    costs = [count_cost(confidence, correct, t, 10, 1, 0.5) for t in [*confidence, 1.1]]
    assert count_cost(confidence, correct, found.threshold, 10, 1, 0.5) == pytest.approx(min(costs))
    assert found.accepted == (confidence >= found.threshold).sum()
    assert found.costs["accept_all"] == pytest.approx(
        count_cost(confidence, correct, 0, 10, 1, 0.5)
    )


def test_where_confidence_is_calibrated_it_is_where_an_error_weighs_as_much_as_a_review():
    found = Decision.least_cost(*draw(20_000, 1), error=10, review=1)
    assert found.threshold == pytest.approx(0.9, abs=0.03)  # (error - review) / (error + gain)
    assert (
        found.costs["low"] < 950 < found.costs["high"]
    )  # of which 900 are reviews: the integral of 10 (1 - c)


def test_the_cost_is_that_of_new_samples():
    """What looks cheapest on 40 samples looks too cheap; the correction takes that back."""
    new = draw(20_000, 2)
    told, apparent, real = [], [], []
    for seed in range(100):
        sample = draw(40, 100 + seed)
        found = Decision.least_cost(*sample, error=4, review=1, resamples=100)
        value = 1.1 if found.threshold is None else found.threshold
        told.append(found.costs["per_1000"])
        apparent.append(count_cost(*sample, value, 4, 1, 0))
        real.append(count_cost(*new, value, 4, 1, 0))
    bias = np.mean(apparent) - np.mean(real)
    assert bias < -20 and abs(np.mean(told) - np.mean(real)) < 0.6 * abs(bias)


def test_extremes_accept_all_or_nothing():
    assert Decision.least_cost([0.5, 0.9], [True, True], error=2, review=1).threshold == 0
    none = Decision.least_cost([0.5, 0.9], [False, False], error=2, review=1)
    assert none.threshold is None and none.accepted == 0 and none.costs["per_1000"] == 1000


def test_a_stored_threshold_is_measured_with_an_interval():
    confidence, correct = draw(500, 3)
    cost, low, high = measure_cost(confidence, correct, 0.8, error=10, review=1)
    assert cost == pytest.approx(count_cost(confidence, correct, 0.8, 10, 1, 0))
    assert low < cost < high


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"error": 1, "review": 1}, "error must cost more than a review"),
        ({"error": 5, "review": -1}, "review and gain be no less than 0"),
        ({"error": float("nan"), "review": 1}, "error must be a finite number, got nan"),
    ],
)
def test_costs_that_decide_nothing_are_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        Decision.least_cost([0.5, 0.9], [True, False], **costs)
