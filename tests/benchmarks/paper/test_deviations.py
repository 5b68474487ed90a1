"""Variants of methods beside their originals, and how far methods change the order."""

import pytest
from benchmarks.paper.deviations import TESTS, compute_taus, list_variants, measure_variant

import rightly
from tests.conftest import make


@pytest.fixture
def sets():
    return {name: make(seed=seed) for seed, name in enumerate(("cal", *TESTS))}


def test_every_variant_can_be_built():
    for build, is_random in list_variants(with_originals=True).values():
        assert isinstance(build(0), rightly.Calibrator)
        assert is_random == hasattr(build(0), "seed")


def test_a_variant_is_measured_in_distribution_and_under_shift(sets):
    build, _ = list_variants(False)["parameterized_temperature_scaling"]
    *values, spread = measure_variant(build, 2, {"one": sets, "two": sets})
    assert len(values) == 6 and all(0 < value < 1 for value in values)
    assert spread >= 0


def test_taus_are_those_of_two_orders(sets):
    assert compute_taus("uncalibrated", sets) == pytest.approx((1, 1))
    of_all, of_sure = compute_taus("spline", sets)
    assert -1 <= of_sure <= 1 and -1 <= of_all < 1
