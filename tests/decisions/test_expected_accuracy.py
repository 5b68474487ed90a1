"""Expected ranges by hand, and the rule of tensors here."""

import numpy as np
import pytest
import torch

from rightly.calibrators.shift_adaptation import ShiftAdaptation
from rightly.decisions.expected_accuracy import ShiftConstants

WIDE = ShiftConstants((0.5, 0.1, 0.2), (-2.5, 0.25), 30.0)


def learned(misses, contexts, quantile=None):
    return ShiftConstants((0.0, 0.0, 0.0), (-9.0, 9.0), 0.0, misses, contexts, quantile)


def test_misses_grow_with_the_square_beyond_what_was_learned_from():
    constants = learned([0.03, -0.01], [-1.0, -1.0])
    near = (0.0005 * 1.5) ** 0.5
    assert constants.find_miss(-0.5) == pytest.approx(near)
    assert constants.find_miss(-2.0) == pytest.approx(4 * near)
    assert constants.find_miss(2.0) == pytest.approx(4 * near)


def test_ranges_stay_within_0_and_1():
    def expect(p, miss):
        # Two misses of which one is 0: the mean square, times 1 + 1/2, is that of `miss`.
        constants = learned([miss / 0.75**0.5, 0.0], [1.0, 1.0], 2.0)
        return constants.expect_accuracy(np.array([p]), 0.0, np.array([100]))

    width = 2 * (0.6 * 0.4 / 100 + 0.0007) ** 0.5
    assert expect(0.6, 0.0007**0.5) == pytest.approx((0.6, 0.6 - width, 0.6 + width))
    assert expect(0.95, 0.1)[2] == 1.0 and expect(0.05, 0.1)[1] == 0.0


def test_the_value_is_known_without_a_range_and_nothing_without_samples():
    adapted = np.array([0.5, 0.7])
    value, low, high = learned((), ()).expect_accuracy(adapted, -1.0)
    assert value == pytest.approx(0.6) and np.isnan(low) and np.isnan(high)
    assert np.isnan(WIDE.expect_accuracy(adapted[:0], 0.0)).all()
    counted = WIDE.expect_accuracy(adapted, 0.0, np.array([3, 1])).value
    assert counted == pytest.approx(0.55)


def test_numbers_and_tensors_are_adapted_alike():
    shift = ShiftAdaptation.of(
        reference=torch.zeros(3),
        weights=torch.tensor(WIDE.weights, dtype=torch.float64),
        limits=torch.tensor(WIDE.limits, dtype=torch.float64),
        noise=torch.tensor(WIDE.noise, dtype=torch.float64),
        misses=torch.zeros(2),
        kind_estimates=torch.ones(2),
    )
    constants = shift.constants()
    confidence = np.r_[0.0, 1e-9, np.random.default_rng(0).uniform(size=500), 0.7, 0.7, 1.0]
    for estimate in (-2.5, -0.6, 0.0, 0.25):
        expected = shift.adjust(
            torch.from_numpy(confidence), torch.tensor(estimate, dtype=torch.float64)
        )
        adapted = constants.adjust(confidence, estimate)
        np.testing.assert_allclose(adapted, expected.numpy(), rtol=0, atol=1e-12)
        assert (np.diff(adapted[np.argsort(confidence)]) >= 0).all()
    assert constants.adjust(confidence, 0.0) is confidence
    for mean, samples in ((-9.0, 4), (-1.0, 512), (0.1, 1), (3.0, 64)):
        assert constants.estimate(mean, samples) == shift.shrink(mean, samples).value
    assert constants.estimate(float("nan"), 0) == 0
