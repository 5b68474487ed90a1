"""The threshold at which errors and reviews together cost least."""

from dataclasses import dataclass

import numpy as np

from rightly.checks import check_confidence
from rightly.decisions.costs import RESAMPLES, Amount, check_costs
from rightly.resampling import draw_resamples, interval
from rightly.shapes import AnyArray


@dataclass(frozen=True)
class CostThreshold:
    """Where to accept at least cost, and the cost of 1,000 images there and elsewhere."""

    value: float | None  # None: to accept nothing costs least
    accepted: int
    cost: float  # of 1,000 images, corrected for having been chosen on these samples
    low: float  # approximate 95 % interval
    high: float
    accept_all: float  # what 1,000 images cost without a threshold
    review_all: float  # what they cost if all are reviewed


def least_cost_threshold(
    confidence: AnyArray,
    correct: AnyArray,
    *,
    error: Amount,
    review: Amount,
    gain: Amount = 0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CostThreshold:
    """The threshold with the least cost on these samples.

    An accepted prediction costs `error` if it is wrong and earns `gain` if it is right; any other
    costs a `review`. The cost is corrected for optimism, and its interval found, by bootstrap
    (Efron, 1983).

    >>> least_cost_threshold([0.9, 0.8, 0.6], [True, True, False], error=10, review=1).value
    0.8
    """
    c, a = check_confidence(confidence, correct)
    check_costs(error, review, gain)
    n, order = len(c), np.argsort(-c, kind="stable")
    ordered = c[order]
    # What accepting each sample adds to the cost of reviewing all.
    added = np.where(a[order], -gain, error) - review
    last = np.append(np.diff(ordered) < 0, True)  # samples of one confidence go together
    ends = np.append(0, np.flatnonzero(last) + 1)  # how many are accepted

    def total(weights: np.ndarray) -> np.ndarray:
        sums = np.cumsum(weights * added, axis=-1)
        return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)[..., ends] / n

    own = total(np.ones(n))
    best = int(np.argmin(own))
    drawn, optimism = [], []
    for counts in draw_resamples(n, resamples, seed):
        values = total(counts[:, order])
        chosen = values.argmin(-1)
        drawn.append(values[:, best])
        optimism.append(own[chosen] - values[np.arange(len(chosen)), chosen])
    # Of what was chosen on a resample, on the samples it was drawn from: dearer by so much.
    shift = max(float(np.concatenate(optimism).mean()), 0.0)
    cost = review + own[best] + shift
    ends_of_cost = interval(cost, review + np.concatenate(drawn) + shift)
    accepted = int(ends[best])
    value = None if not accepted else 0.0 if accepted == n else float(ordered[accepted - 1])
    numbers = (cost, ends_of_cost.low, ends_of_cost.high, review + own[-1], float(review))
    return CostThreshold(value, accepted, *(1000 * float(number) for number in numbers))
