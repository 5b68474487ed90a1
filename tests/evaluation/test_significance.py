"""Tests over classifiers against published and independent values."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, wilcoxon

from rightly.evaluation.ranking import (
    compute_critical_difference,
    compute_friedman,
    compute_signed_rank_posterior,
    compute_wilcoxon_p,
    min_classifiers,
    rank_values,
)

# Demsar (2006), table 6: AUC of four classifiers on 14 data sets.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_ranks_and_critical_difference_are_those_of_demsar():
    ranks = rank_values(AUC, lower_is_better=False)
    np.testing.assert_allclose(ranks.mean(0), [3.143, 2.0, 2.893, 1.964], atol=5e-4)
    assert compute_critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_friedmans_statistic_is_scipys_and_its_p_near():
    friedman = compute_friedman(rank_values(AUC, lower_is_better=False))
    statistic, p = friedmanchisquare(*AUC.T)
    assert friedman.statistic == pytest.approx(statistic)
    assert friedman.p == pytest.approx(p, abs=0.006)
    assert compute_friedman(np.full((3, 4), 2.5)) == (0.0, 1.0)  # all the same


def test_two_classifiers_that_agree_prove_nothing():
    # Six orders of three methods: the other classifier has the same one by chance in six.
    assert compute_friedman(np.array([[1.0, 2, 3], [1, 2, 3]])).p == pytest.approx(1 / 6, abs=0.02)


@pytest.mark.parametrize("n", [3, 5, 9, 40])
def test_wilcoxons_p_is_scipys(n):
    differences = np.random.default_rng(n).normal(0.4, 1, n)
    tolerance = 1e-12 if n <= 16 else 0.01
    assert compute_wilcoxon_p(differences) == pytest.approx(
        wilcoxon(differences).pvalue, abs=tolerance
    )


def test_ties_and_zeros_do_not_make_few_classifiers_significant():
    # The normal approximation, which SciPy takes with ties, says 0.04 here.
    assert compute_wilcoxon_p(np.full(5, 0.01)) == 2 / 2**5
    assert compute_wilcoxon_p(np.array([0.0, 0, 1])) == 1.0
    assert compute_wilcoxon_p(np.zeros(4)) == 1.0
    assert min_classifiers(1) == 6 and min_classifiers(39) == 11


@pytest.mark.parametrize(
    ("other", "rope", "probabilities"),  # of baycomp 1.0.3, 200,000 samples: worse, same, better
    [
        (1, 0.005, (0.00005, 0.03813, 0.96183)),
        (2, 0.005, (0.39711, 0.10381, 0.49908)),
        (2, 0.01, (0.11633, 0.69493, 0.18874)),
        (3, 0.01, (0.00040, 0.03276, 0.96685)),
    ],
)
def test_the_bayesian_signed_rank_test_is_baycomps(other, rope, probabilities):
    posterior = compute_signed_rank_posterior(AUC[:, other] - AUC[:, 0], rope, False)
    np.testing.assert_allclose(posterior, probabilities[::-1], atol=0.015)
    mirrored = compute_signed_rank_posterior(AUC[:, 0] - AUC[:, other], rope, True)
    np.testing.assert_allclose(mirrored, posterior)


def test_equal_methods_are_the_same_and_without_a_rope_neither_better_nor_worse():
    assert compute_signed_rank_posterior(np.zeros(6), 0.001, True) == (0.0, 1.0, 0.0)
    better, same, worse = compute_signed_rank_posterior(np.zeros(6), 0.0, True)
    assert better == worse and same == 0
