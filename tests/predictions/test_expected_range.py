"""Expected ranges by hand."""

import pytest

from rightly.predictions.expected_range import find_miss, find_range


def test_misses_grow_with_the_square_beyond_what_was_learned_from():
    misses, contexts = [0.03, -0.01], [-1.0, -1.0]
    near = (0.0005 * 1.5) ** 0.5
    assert find_miss(-0.5, misses, contexts) == pytest.approx(near)
    assert find_miss(-2.0, misses, contexts) == pytest.approx(4 * near)
    assert find_miss(2.0, misses, contexts) == pytest.approx(4 * near)


def test_ranges_stay_within_0_and_1():
    assert find_range(0.6, 0.0009, 0.04, 2.0) == pytest.approx((0.5, 0.7))
    assert find_range(0.95, 0.0009, 0.04, 2.0) == pytest.approx((0.85, 1.0))
