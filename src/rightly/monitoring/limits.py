"""Limits of the sequential test for drift, by how often it would alarm without.

Years are simulated from calibration rows, each with the reference redrawn, so that both names
together alarm as often by chance as was asked for; the limit of shifts comes from years with other
shares of classes too.
"""

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from rightly.checks import check_positive
from rightly.monitoring.drift import (
    BLOCKS_PER_DAY,
    PRIOR_SHIFT,
    SHIFT,
    DriftPlan,
    Reference,
    advance,
)

YEARS = 50  # simulated with the classes' own shares, and as many with others
SKEW = 0.3  # of the Dirichlet distribution of the others
MOST_A_YEAR = 3.0  # false shifts: more tell of one lasting error, as the first did
CLASS_PRIOR = 20.0  # samples' worth by which the mean of a true class is shrunk
POOL, POOLED = 512, 128  # blocks of a year, and samples up to which they are drawn one by one
LIMITS = np.geomspace(1, 60, 16)  # tried, in standard deviations of a block


def find_limits(
    reference: Reference,
    plan: DriftPlan,
    false_alarms_per_year: float = 1.0,
    has_agreement: bool = False,
    *,
    seed: int = 0,
) -> DriftPlan:
    """The plan with limits from simulated years; half of the false alarms go to each name.

    Where blocks are measured by time there are at most 24 a day, and that many are simulated:
    with fewer, or larger ones, there are fewer false alarms.
    """
    check_positive("false_alarms_per_year", false_alarms_per_year)
    per_day = plan.samples_per_day or float(plan.block * BLOCKS_PER_DAY)
    steps = max(1, round(365 * per_day / plan.block))
    rng = np.random.default_rng(seed)
    alarms = count_false_alarms(reference, plan, steps, has_agreement, rng)
    limits = {
        name: _find_limit(counts, false_alarms_per_year / 2) for name, counts in alarms.items()
    }
    return replace(plan, limits=limits)


def count_false_alarms(
    reference: Reference, plan: DriftPlan, steps: int, has_agreement: bool, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """False alarms a year at each of LIMITS, by name, over simulated years of so many blocks."""
    unit = np.where(reference.scale > 0, reference.scale, 1)
    values = reference.rows * unit + reference.centres[reference.row_classes]
    rows = reference.standardise(reference.row_classes, values, has_agreement)
    size = int(reference.counts.sum())
    rows = rows - rows.mean(0)
    shown = slice(plan.shift_columns)
    rows[:, shown] = _centre(rows[:, shown], reference.row_labels)
    pools = _draw_years(rows, reference.row_labels, plan.block, size, rng)
    allowance = np.array(plan.allowance, np.float32)
    sums = np.zeros((len(LIMITS), len(pools), 2, rows.shape[1]), np.float32)
    alarms = {name: np.zeros((len(LIMITS), len(pools))) for name in plan.parts()}
    for _ in range(steps):
        drawn = rng.integers(POOL, size=len(pools))
        sums = advance(sums, pools[np.arange(len(pools)), drawn], plan.block, allowance)
        for name, part in plan.parts().items():
            is_over = sums[..., part].max((-1, -2)) > LIMITS[:, None]
            if is_over.any():
                alarms[name] += is_over
                sums[..., part][is_over] = 0
    shifts = alarms[SHIFT].clip(max=MOST_A_YEAR)
    return {
        SHIFT: np.maximum(shifts[:, :YEARS].mean(1), shifts[:, YEARS:].mean(1)),
        PRIOR_SHIFT: alarms[PRIOR_SHIFT][:, :YEARS].mean(1),
    }


def _centre(
    rows: Float[np.ndarray, "r k"], labels: Int[np.ndarray, " r"]
) -> Float[np.ndarray, "r k"]:
    """Rows less the mean of their true class, which is chance where these are some of many."""
    count = np.bincount(labels)
    totals = np.zeros((len(count), rows.shape[1]))
    np.add.at(totals, labels, rows)
    centred: np.ndarray = rows - (totals / (count + CLASS_PRIOR)[:, None])[labels]
    return centred


def _draw_years(
    rows: Float[np.ndarray, "r d"],
    labels: Int[np.ndarray, " r"],
    block: int,
    size: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "years pool d"]:
    """Means of blocks of each year, whose samples are those that a reference of `size` was
    drawn from, as far as it tells: by a Bayesian bootstrap (Rubin, 1981), which moves means,
    shares and how much both vary.

    Of large blocks by the central limit theorem. In 32 bits, which are exact enough here.
    """
    count = np.bincount(labels)
    own = count / count.sum()
    pools = []
    for year in range(2 * YEARS):
        share = own if year < YEARS else rng.dirichlet(np.full(len(count), SKEW)) * (count > 0)
        share = share / share.sum() if share.sum() > 0 else own
        # Rows that stand for several samples each are known as well as so many.
        known = rng.gamma(size / len(rows), size=len(rows))
        weight = (share / np.maximum(count, 1))[labels] * known
        weight /= weight.sum()
        if block <= POOLED:
            means = rows[rng.choice(len(rows), (POOL, block), p=weight)].mean(1)
        else:
            mean = weight @ rows
            spread = (rows - mean).T @ ((rows - mean) * weight[:, None])
            means = mean + _draw_normal(spread / block, POOL, rng)
        pools.append(means)
    return np.stack(pools).astype(np.float32)


def _draw_normal(covariance: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    drawn: np.ndarray = rng.multivariate_normal(
        np.zeros(len(covariance)), covariance, count, check_valid="ignore", method="eigh"
    )
    return drawn


def _find_limit(counts: Float[np.ndarray, " k"], wanted: float) -> float:
    """The least limit with at most so many alarms a year, between those tried."""
    below = np.flatnonzero(counts <= wanted)
    if not len(below):
        return float(LIMITS[-1])
    k = int(below[0])
    if k == 0:
        return float(LIMITS[0])
    # Alarms fall about exponentially with the limit; none at all counts as half of one.
    high, low = (math.log(max(counts[i], 0.5 / YEARS)) for i in (k - 1, k))
    share = (high - math.log(wanted)) / max(high - low, 1e-9)
    return float(LIMITS[k - 1] + min(share, 1.0) * (LIMITS[k] - LIMITS[k - 1]))
