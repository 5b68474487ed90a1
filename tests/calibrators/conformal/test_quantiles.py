"""Ranks of the quantile, and the law of what it covers."""

from fractions import Fraction

import pytest
import torch
from scipy.stats import beta

from rightly.calibrators.conformal.quantiles import (
    check_enough,
    conformal_rank,
    coverage_interval,
    find_quantile,
    samples_needed,
)
from rightly.checks import check_fraction


def test_ranks_are_of_the_decimal_number():
    for n in (9, 19, 99, 999):
        for percent in range(1, 100):
            exact = Fraction(percent, 100) * (n + 1)
            assert conformal_rank(n, percent / 100) == -(-exact.numerator // exact.denominator)


def test_the_samples_needed_are_the_least_that_have_a_rank():
    for coverage in (0.5, 0.8, 0.9, 0.95, 0.99, 0.07):
        n = samples_needed(coverage)
        assert conformal_rank(n, coverage) <= n
        assert n == 1 or conformal_rank(n - 1, coverage) > n - 1


def test_the_quantile_is_an_order_statistic():
    scores = torch.tensor([0.5, 0.1, 0.3, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9])
    assert find_quantile(scores, 0.9) == scores.max()
    assert find_quantile(scores, 0.5) == 0.5


def test_the_interval_is_of_the_beta_law():
    low, high = coverage_interval(500, 0.9, level=0.9)
    assert (low, high) == pytest.approx(beta(451, 50).ppf([0.05, 0.95]))
    assert coverage_interval(5, 0.9) == (1.0, 1.0)


def test_too_few_samples_are_told_how_many_are_needed():
    with pytest.raises(ValueError, match="0.99 needs at least 99 held-out images, got 50.*0.9803"):
        check_enough(50, 0.99)
    with pytest.raises(ValueError, match="needs at least 45 held-out images, got 44"):
        check_enough(44, 0.9, share=0.2)
    check_enough(45, 0.9, share=0.2)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, float("nan"), True, "0.9", None])
def test_a_coverage_is_a_share(coverage):
    with pytest.raises(ValueError, match="coverage must be a fraction in .0, 1."):
        check_fraction("coverage", coverage)
