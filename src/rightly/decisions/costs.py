"""Costs of errors and reviews: the threshold of least cost, and the cost at a threshold."""

from typing import NamedTuple

import numpy as np

from rightly.checks import check_confidence
from rightly.resampling import draw_resamples, interval
from rightly.shapes import AnyArray

RESAMPLES = 1000
Amount = float | int


class LeastCost(NamedTuple):
    """The threshold of least cost, None where reviewing all costs least, and the costs of 1,000."""

    threshold: float | None
    costs: dict[str, float]


def find_least_cost(
    c: np.ndarray,
    a: np.ndarray,
    error: Amount,
    review: Amount,
    gain: Amount = 0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> LeastCost:
    """Threshold of least cost on these samples; its cost corrected for having been chosen on them.

    The correction, and the interval, are found by bootstrap (Efron, 1983).
    """
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
    low, high = interval(cost, review + np.concatenate(drawn) + shift)
    numbers = {"per_1000": cost, "low": low, "high": high, "accept_all": review + own[-1]}
    amounts = {"error": float(error), "review": float(review), "gain": float(gain)}
    accepted = int(ends[best])
    value = None if not accepted else 0.0 if accepted == n else float(ordered[accepted - 1])
    return LeastCost(value, amounts | {name: 1000 * float(x) for name, x in numbers.items()})


def measure_cost(
    confidence: AnyArray,
    correct: AnyArray,
    threshold: float,
    *,
    error: Amount,
    review: Amount,
    gain: Amount = 0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float, float]:
    """What 1,000 images cost at a threshold, and its approximate 95 % interval."""
    c, a = check_confidence(confidence, correct)
    check_costs(error, review, gain)
    each = np.where(c >= threshold, np.where(a, -gain, error), review)
    drawn = [counts @ each / len(c) for counts in draw_resamples(len(c), resamples, seed)]
    ends = interval(float(each.mean()), np.concatenate(drawn))
    return 1000 * float(each.mean()), 1000 * ends.low, 1000 * ends.high


def check_costs(error: Amount, review: Amount, gain: Amount = 0) -> None:
    """Refuses costs that are no finite numbers, or under which nothing is to be decided."""
    for name, value in (("error", error), ("review", review), ("gain", gain)):
        if isinstance(value, bool) or not isinstance(value, float | int) or not np.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}: pass what one costs")
    if review < 0 or gain < 0 or error <= review:
        raise ValueError(
            f"error must cost more than a review, and review and gain be no less than 0, got error "
            f"{error:g}, review {review:g} and gain {gain:g}: all as amounts that are paid, or "
            "earned with gain"
        )
