"""A sequential test for drift: two-sided CUSUM charts (Page, 1954) with one limit for each name.

Samples are described by standardised columns: context, confidence and agreement of views, each
counted from centres that a changed class mix hardly moves (`drift_reference`), and shares of
predicted classes. The first alarm as "shift", the others as "class mix". Limits come from
simulated years of calibration rows, each with another error of the reference, so that both names
together alarm as often by chance as was asked for; that of shifts also from years with other
shares of classes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

SHIFT, CLASS_MIX = "shift", "class mix"
GROUPS = 16  # of classes, whose shares are watched: with fewer classes each is one
LEAST_BLOCK = 64  # samples; more where there would be more than 24 blocks a day
LEAST_SHIFT = 0.2  # standard deviations of a sample: half of it is taken off every step
REFERENCE_ERROR = 2.0  # standard errors of the reference that are taken off too
LEAST_SHARE = 0.02  # whose standard deviation is the least that shares are divided by
YEARS = 50  # simulated with the classes' own shares, and as many with others
SKEW = 0.3  # of the Dirichlet distribution of the others
POOL, POOLED = 512, 128  # blocks of a year, and samples up to which they are drawn one by one
LIMITS = np.geomspace(1, 60, 16)  # tried, in standard deviations of a block


@dataclass(frozen=True, eq=False)
class Reference:
    """What samples without drift look like: the arrays of a DriftReference."""

    centres: Float[np.ndarray, "c 3"]
    scale: Float[np.ndarray, " 3"]
    allowance: Float[np.ndarray, " 3"]
    counts: Int[np.ndarray, " c"]
    rows: Float[np.ndarray, "r 3"]
    row_classes: Int[np.ndarray, " r"]
    row_labels: Int[np.ndarray, " r"]

    @cached_property
    def shares(self) -> Float[np.ndarray, " g"]:
        """Of the groups of classes."""
        groups = min(len(self.counts), GROUPS)
        total = np.bincount(np.arange(len(self.counts)) % GROUPS, self.counts, groups)
        shares: np.ndarray = total / total.sum()
        return shares

    def watched(self, has_agreement: bool) -> list[int]:
        """The columns of a shift that there are."""
        return [k for k in range(3) if self.scale[k] > 0 and (k < 2 or has_agreement)]

    def describe(
        self,
        classes: Int[np.ndarray, " n"],
        score: Float[np.ndarray, " n"],
        agreement: Float[np.ndarray, " n"] | None,
    ) -> Float[np.ndarray, "n d"]:
        """Standardised columns of samples: those watched for shifts, then shares of classes."""
        values = np.stack(
            [score, 1 / (1 + np.exp(-score)), score if agreement is None else agreement], 1
        )
        unit = np.where(self.scale > 0, self.scale, 1)
        centred = (values - self.centres[classes]) / unit
        kept = centred[:, self.watched(agreement is not None)]
        return np.concatenate([kept, self._describe_classes(classes)], 1).astype(np.float32)

    def _describe_classes(self, classes: np.ndarray) -> np.ndarray:
        shares = self.shares
        spread = np.sqrt(np.maximum(shares, LEAST_SHARE) * (1 - np.minimum(shares, 0.98)))
        described: np.ndarray = (
            (classes % GROUPS)[:, None] == np.arange(len(shares))
        ) / spread - shares / spread
        return described


@dataclass(frozen=True)
class Plan:
    """How a stream is tested: blocks, what is taken off each step, and when to alarm."""

    block: int
    allowance: tuple[float, ...]  # of each column
    shift_columns: int  # the first so many are watched for shifts
    limits: Mapping[str, float]  # by name of the alarm

    def parts(self) -> dict[str, slice]:
        return {SHIFT: slice(0, self.shift_columns), CLASS_MIX: slice(self.shift_columns, None)}


@dataclass(frozen=True)
class Alarm:
    """That a stream changed: when it was noticed, since when, and in which column."""

    name: str  # SHIFT or CLASS_MIX
    at: int  # samples seen
    since: int  # samples seen when the sums began to grow
    column: int
    rose: bool


class SequentialTest:
    """Runs over a stream in constant memory; after an alarm its sums begin again."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen = 0
        columns = len(plan.allowance)
        self._sums = np.zeros((2, columns))
        self._since = np.zeros((2, columns), int)

    def update(self, values: Float[np.ndarray, "n d"]) -> list[Alarm]:
        """The alarms after one more block."""
        mean = values.mean(0, dtype=np.float64)
        self._sums = advance(self._sums, mean, len(values), np.array(self.plan.allowance))
        self.seen += len(values)
        alarms = []
        for name, part in self.plan.parts().items():
            sums = self._sums[:, part]
            if sums.max() > self.plan.limits[name]:
                side, k = np.unravel_index(int(sums.argmax()), sums.shape)
                column = int(k) + (part.start or 0)
                since = int(self._since[side, column])
                alarms.append(Alarm(name, self.seen, since, column, bool(side == 0)))
                self._sums[:, part] = 0
        self._since[self._sums == 0] = self.seen
        return alarms


def advance(
    sums: Float[np.ndarray, "... 2 d"],
    mean: Float[np.ndarray, "... d"],
    size: int,
    allowance: Float[np.ndarray, " d"],
) -> Float[np.ndarray, "... 2 d"]:
    """One step: upwards and downwards sums of means, in standard deviations of a block."""
    step = math.sqrt(size) * np.stack([mean - allowance, -mean - allowance], -2)
    return np.maximum(sums + step, 0)


def plan_test(
    reference: Reference,
    samples_per_day: float,
    false_alarms_per_year: float = 1.0,
    *,
    has_agreement: bool = False,
    seed: int = 0,
) -> Plan:
    """Blocks of at least an hour and 64 samples; limits from simulated years.

    Half of the false alarms go to each name.
    """
    if not (math.isfinite(samples_per_day) and samples_per_day > 0):
        raise ValueError(f"samples_per_day must be a positive number, got {samples_per_day}")
    if not (math.isfinite(false_alarms_per_year) and false_alarms_per_year > 0):
        raise ValueError(
            f"false_alarms_per_year must be a positive number, got {false_alarms_per_year}"
        )
    block = max(LEAST_BLOCK, math.ceil(samples_per_day / 24))
    steps = max(1, round(365 * samples_per_day / block))
    watched, groups = reference.watched(has_agreement), len(reference.shares)
    known = LEAST_SHIFT / 2 + REFERENCE_ERROR / math.sqrt(reference.counts.sum())
    allowance = np.array([*(known + reference.allowance[watched]), *[known] * groups])
    plan = Plan(block, tuple(allowance.tolist()), len(watched), {})
    rng = np.random.default_rng(seed)
    alarms = count_false_alarms(reference, plan, steps, has_agreement, rng)
    limits = {
        name: _find_limit(counts, false_alarms_per_year / 2) for name, counts in alarms.items()
    }
    return Plan(block, plan.allowance, plan.shift_columns, limits)


def count_false_alarms(
    reference: Reference, plan: Plan, steps: int, has_agreement: bool, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """False alarms a year at each of LIMITS, by name, over simulated years of so many blocks."""
    unit = np.where(reference.scale > 0, reference.scale, 1)
    values = reference.rows * unit + reference.centres[reference.row_classes]
    agreement = values[:, 2] if has_agreement else None
    rows = reference.describe(reference.row_classes, values[:, 0], agreement)
    size = int(reference.counts.sum())
    pools = _draw_years(rows - rows.mean(0), reference.row_labels, plan.block, size, rng)
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
    own, other = (
        {name: counts[:, years].mean(1) for name, counts in alarms.items()}
        for years in (slice(YEARS), slice(YEARS, None))
    )
    return {SHIFT: np.maximum(own[SHIFT], other[SHIFT]), CLASS_MIX: own[CLASS_MIX]}


def _draw_years(
    rows: Float[np.ndarray, "r d"],
    labels: Int[np.ndarray, " r"],
    block: int,
    size: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "years pool d"]:
    """Means of blocks of each year, with the error of a reference of `size` samples.

    Of large blocks by the central limit theorem. In 32 bits, which are exact enough here.
    """
    covariance, count = np.cov(rows.T), np.bincount(labels)
    own = count / count.sum()
    pools = []
    for year in range(2 * YEARS):
        share = own if year < YEARS else rng.dirichlet(np.full(len(count), SKEW)) * (count > 0)
        share = share / share.sum() if share.sum() > 0 else own
        weight = (share / np.maximum(count, 1))[labels]
        if block <= POOLED:
            means = rows[rng.choice(len(rows), (POOL, block), p=weight)].mean(1)
        else:
            mean = weight @ rows
            spread = (rows - mean).T @ ((rows - mean) * weight[:, None])
            means = mean + _draw_normal(spread / block, POOL, rng)
        # Each class is known as well as its samples allow.
        variance = float((share**2 / np.maximum(own * size, 1)).sum())
        pools.append(means + _draw_normal(covariance * variance, 1, rng))
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
