"""Tests over classifiers, each of them one observation (Demsar, 2006).

Values are (classifiers, methods). Test sets of one classifier are not independent of each other, so
they are averaged before, never counted as observations of their own.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Table = Float[np.ndarray, "classifiers methods"]
Differences = Float[np.ndarray, " classifiers"]

PERMUTATIONS = 9_999
EXACT = 16  # classifiers up to which all signs are tried, 2**16 of them
PRIOR = 0.5  # weight of the prior's one observation, a difference of 0 (Benavoli et al., 2017)
DRAWS = 20_000


class Friedman(NamedTuple):
    """Whether the methods differ at all."""

    statistic: float  # chi squared, corrected for ties
    p: float


class SignedRank(NamedTuple):
    """Posterior probabilities that a method is better, practically the same, or worse."""

    better: float
    same: float
    worse: float


def compute_friedman(ranks: Table, seed: int = 0) -> Friedman:
    """Friedman's statistic (1937), with its p value from permutations within classifiers.

    The usual chi squared and F are for many classifiers: of two that agree, F says p = 0.
    """
    rng = np.random.default_rng(seed)
    k = ranks.shape[1]
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())  # the same in any order
    if not spread:
        return Friedman(0.0, 1.0)
    observed = _spread_of_sums(ranks)
    drawn = [_spread_of_sums(rng.permuted(ranks, axis=1)) for _ in range(PERMUTATIONS)]
    beyond = sum(one >= observed * (1 - 1e-12) for one in drawn)
    return Friedman((k - 1) * observed / spread, (1 + beyond) / (1 + PERMUTATIONS))


def _spread_of_sums(ranks: Table) -> float:
    sums = ranks.sum(0)
    return float(((sums - sums.mean()) ** 2).sum())


def compute_critical_difference(methods: int, classifiers: int, level: float = 0.05) -> float:
    """How far mean ranks must lie apart to differ, whichever two they are (Nemenyi, 1963)."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(methods * (methods + 1) / (6 * classifiers)))


def compute_wilcoxon_p(differences: Differences) -> float:
    """Two-sided p value of Wilcoxon's signed-rank test (1945), zeros ranked as by Pratt (1959).

    Exact, also with ties, up to 16 classifiers; from there on the normal approximation.
    """
    from scipy.stats import norm, rankdata

    ranks = rankdata(abs(differences)) * (differences != 0)
    if not ranks.any():
        return 1.0
    observed, n = abs((ranks * np.sign(differences)).sum()), len(ranks)
    if n > EXACT:
        return float(min(1.0, 2 * norm.sf(observed / math.sqrt((ranks**2).sum()))))
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return float((abs(signs @ ranks) >= observed - 1e-9).mean())


def min_classifiers(tests: int, level: float = 0.05) -> int:
    """How many classifiers the signed-rank test needs to pass Holm's correction of that many."""
    return math.ceil(math.log2(2 * max(tests, 1) / level))


def compute_signed_rank_posterior(
    differences: Differences, rope: float, lower_is_better: bool, seed: int = 0
) -> SignedRank:
    """The Bayesian signed-rank test (Benavoli et al., 2014): a Dirichlet process over differences.

    `differences` are the method's values less the reference's; those within `rope` are none.
    """
    rng = np.random.default_rng(seed)
    gains = -differences if lower_is_better else differences
    with_prior = np.append(0.0, gains)
    sums = with_prior[:, None] + with_prior
    better = (sums > 2 * rope) + 0.5 * (sums == 2 * rope)
    worse = (sums < -2 * rope) + 0.5 * (sums == -2 * rope)
    weights = rng.dirichlet(np.append(PRIOR, np.ones(len(gains))), DRAWS)
    shares = np.stack(
        [((weights @ which) * weights).sum(1) for which in (better, 1 - better - worse, worse)], 1
    )
    # What ties is shared, so that equal methods are as likely better as worse.
    is_largest = shares >= shares.max(1, keepdims=True) - 1e-12
    probabilities = (is_largest / is_largest.sum(1, keepdims=True)).mean(0)
    return SignedRank(*map(float, probabilities))
