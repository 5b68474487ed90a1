"""Metrics of selective prediction: the error rate when only the most confident are accepted.

Each sample of a tie gets the tie's mean error, the average over every order of the tie. A threshold
accepts a tie as a whole: `curves.risk_coverage` has the points that thresholds reach.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from rightly.metrics import ranked
from rightly.metrics.checked_measures import validate_confidence
from rightly.shapes import Confidence, Correct

ROUNDING = 1e-9  # share of a sample by which sums of errors may be off


def best_error_sum(n: Any, wrong: Any) -> Any:
    """The sum over k of the error rate among the first k, with all wrong samples last.

    Of n, r are right: sum of (k - r) / k over k > r, which is n - r less r times a difference of
    harmonic numbers.
    """
    from scipy.special import digamma

    right = n - wrong
    return wrong - right * (digamma(n + 1) - digamma(right + 1))


def _risks(confidence: Confidence, correct: Correct) -> Float[np.ndarray, " n"]:
    """The error rate among the k most confident, for every k."""
    _, group, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    error = np.repeat(np.bincount(group, weights=~correct) / count, count)
    return error.cumsum() / np.arange(1, len(error) + 1)


@validate_confidence
def aurc(confidence: Confidence, correct: Correct) -> float:
    """Mean over k of the error rate among the k most confident (Geifman et al., 2019)."""
    return _risks(confidence, correct).mean()


@validate_confidence
def e_aurc(confidence: Confidence, correct: Correct) -> float:
    """AURC less that of the same predictions in the best order (Geifman et al., 2019).

    The best AURC is summed exactly; the paper's r + (1 - r) ln(1 - r) is its limit for many
    samples with the error rate r.
    """
    best = best_error_sum(len(correct), (~correct).sum()) / len(correct)
    return max(0.0, _risks(confidence, correct).mean() - best)


@validate_confidence
def augrc(confidence: Confidence, correct: Correct) -> float:
    """Area under the share of samples accepted and wrong, over coverage (Traub et al., 2024).

    (1 - AUROC) a (1 - a) + (1 - a)^2 / 2 with the accuracy a: the chance that a random sample is
    wrong and no less confident than another one, which may be itself; from 0 to 1/2.
    """
    return ranked.augrc(ranked.rank(confidence, correct))


@validate_confidence
def risk_at_coverage(confidence: Confidence, correct: Correct, coverage: float = 0.8) -> float:
    """Error rate among the most confident samples, as many as reach this coverage; one at least."""
    return _risks(confidence, correct)[count_covered(len(correct), coverage) - 1]


@validate_confidence
def coverage_at_risk(confidence: Confidence, correct: Correct, risk: float = 0.05) -> float:
    """Largest share of the most confident samples with at most this error rate; 0 if none."""
    # The last of them: an error at the top may be outweighed by what follows.
    kept = np.flatnonzero(_risks(confidence, correct) <= risk + ROUNDING / len(correct))
    return (kept[-1] + 1) / len(correct) if len(kept) else 0.0


def count_covered(n: int, coverage: float) -> int:
    """How many of n samples reach a coverage, at least one."""
    return max(1, int(np.ceil(coverage * n - ROUNDING)))
