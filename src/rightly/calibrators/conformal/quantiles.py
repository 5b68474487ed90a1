"""Split conformal prediction: the quantile of held-out scores, and its guarantee.

With n held-out scores and k = ceil((n + 1) coverage), the k-th smallest of them is not exceeded by
the score of a further sample with probability k / (n + 1) at least. Given these held-out samples,
that probability follows Beta(k, n + 1 - k) (Vovk, 2012); scores that tie only raise it.
"""

import math
from fractions import Fraction

from torch import Tensor

from rightly.tensor_shapes import PerSample


def conformal_rank(n: int, coverage: float) -> int:
    """ceil((n + 1) coverage), of the coverage's decimal digits: above n where n is too small.

    >>> conformal_rank(99, 0.07), conformal_rank(8, 0.9)
    (7, 9)
    """
    return math.ceil((n + 1) * _exact(coverage))


def samples_needed(coverage: float) -> int:
    """Minimum number of held-out samples that can guarantee this coverage.

    >>> samples_needed(0.9), samples_needed(0.99)
    (9, 99)
    """
    share = _exact(coverage)
    return math.ceil(share / (1 - share))


def coverage_interval(n: int, coverage: float, level: float = 0.95) -> tuple[float, float]:
    """Where the coverage of sets lies, given n held-out samples, with this probability.

    >>> tuple(round(end, 3) for end in coverage_interval(1000, 0.9))
    (0.881, 0.918)
    """
    from scipy.special import betaincinv

    k, tail = conformal_rank(n, coverage), (1 - level) / 2
    if k > n:
        return 1.0, 1.0
    low, high = (float(betaincinv(k, n + 1 - k, share)) for share in (tail, 1 - tail))
    return low, high


def check_enough(n: int, coverage: float, share: float = 1.0) -> None:
    """Refuses held-out samples of which this share are fewer than the coverage needs."""
    needed, used = math.ceil(samples_needed(coverage) / share), int(n * share)
    if n < needed:
        raise ValueError(
            f"coverage {coverage} needs at least {needed} held-out images, got {n}: hold out more, "
            f"or ask for a coverage of at most {math.floor(1e4 * used / (used + 1)) / 1e4}"
        )


def find_quantile(scores: PerSample, coverage: float) -> Tensor:
    """The score that a further sample's does not exceed with this probability."""
    return scores.sort().values[conformal_rank(len(scores), coverage) - 1]


def _exact(coverage: float) -> Fraction:
    # 0.07 is 7/100 here; as a binary number it is a little more, and 100 times that above 7.
    return Fraction(repr(float(coverage)))
