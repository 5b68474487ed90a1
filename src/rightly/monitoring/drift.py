"""A sequential test for drift: two-sided CUSUM charts (Page, 1954) with one limit for each name.

Samples are described by standardised columns: score, confidence and agreement of views, each
counted from centres that a changed class prior hardly moves (`drift_reference`), and shares of
predicted classes. The first alarm as "shift", the others as "class prior". `limits` finds the
limits. Logs and servers feed the same `DriftWatch`, which divides samples into blocks by one rule.
"""

import itertools
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rightly.checks import check_positive

SHIFT, PRIOR_SHIFT = "shift", "class prior"
NAMES = (SHIFT, PRIOR_SHIFT)
MIN_BLOCK, BLOCK_S = 64, 3600.0  # of a block: samples and, where times are known, seconds
BLOCKS_PER_DAY = 24  # at most
MIN_SHIFT = 0.2  # standard deviations of a sample: half of it is taken off every step
REFERENCE_ERROR = 2.0  # standard errors of the reference that are taken off too
MAX_STEP_BACK_S = 3600.0  # of a clock: beyond, the times before were ahead of it
POINTS = 32  # of the levels that are kept
GROUPS = 16  # of classes, whose shares are watched: with fewer classes each is one
PRIOR_BLOCKS = 32  # after an alarm of the class prior, in which shifts must be larger to count
PRIOR_FACTOR = 2.0  # by how much
MAX_SCORE = 12.0  # log-odds by which calibrators bound scores
MIN_SHARE = 0.02  # whose standard deviation is the least that shares are divided by


@dataclass(frozen=True, eq=False)
class Reference:
    """What samples without drift look like."""

    scores: Float[np.ndarray, " c"]  # from which shift scores of a predicted class are counted
    centres: Float[np.ndarray, "c 3"]
    scale: Float[np.ndarray, " 3"]
    allowance: Float[np.ndarray, " 3"]
    counts: Int[np.ndarray, " c"]
    rows: Float[np.ndarray, "r 3"]
    row_classes: Int[np.ndarray, " r"]
    row_labels: Int[np.ndarray, " r"]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Reference":
        """From the table `drift` of an exported file."""
        arrays = {name: np.array(value) for name, value in table.items()}
        return cls(scores=arrays.pop("reference"), **arrays)

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
        shift_score: Float[np.ndarray, " n"],
        agreement: Float[np.ndarray, " n"] | None,
    ) -> Float[np.ndarray, "n d"]:
        """Standardised columns of samples: those watched for shifts, then shares of classes."""
        score, confidence = self.score_confidence(classes, shift_score)
        values = np.stack([score, confidence, score if agreement is None else agreement], 1)
        return self.standardise(classes, values, agreement is not None)

    def score_confidence(
        self, classes: Int[np.ndarray, " n"], shift_score: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Scores, which are log-odds of unadapted confidence, and this confidence."""
        score = np.clip(shift_score + self.scores[classes], -MAX_SCORE, MAX_SCORE)
        return score, 1 / (1 + np.exp(-score))

    def standardise(
        self,
        classes: Int[np.ndarray, " n"],
        values: Float[np.ndarray, "n 3"],
        has_agreement: bool,
    ) -> Float[np.ndarray, "n d"]:
        """The same of scores, confidences and agreements."""
        unit = np.where(self.scale > 0, self.scale, 1)
        centred = (values - self.centres[classes]) / unit
        kept = centred[:, self.watched(has_agreement)]
        return np.concatenate([kept, self._describe_classes(classes)], 1).astype(np.float32)

    def _describe_classes(self, classes: np.ndarray) -> np.ndarray:
        shares = self.shares
        spread = np.sqrt(np.maximum(shares, MIN_SHARE) * (1 - np.minimum(shares, 0.98)))
        described: np.ndarray = (
            (classes % GROUPS)[:, None] == np.arange(len(shares))
        ) / spread - shares / spread
        return described


@dataclass(frozen=True)
class DriftPlan:
    """How a stream is tested: blocks, what is taken off each step, and when to alarm."""

    block: int  # samples, at least
    seconds: float  # at least; 0 where a block is so many samples, whatever their times
    allowance: tuple[float, ...]  # of each column
    shift_columns: int  # the first so many are watched for shifts
    limits: Mapping[str, float]  # by name of the alarm
    samples_per_day: float | None = None  # as it was given

    def parts(self) -> dict[str, slice]:
        return {SHIFT: slice(0, self.shift_columns), PRIOR_SHIFT: slice(self.shift_columns, None)}


def plan_blocks(
    reference: Reference, samples_per_day: float | None = None, has_agreement: bool = False
) -> DriftPlan:
    """Blocks of at least an hour and 64 samples, without limits.

    Without a rate they are measured by the times of samples; with one, in samples.
    """
    block, seconds = MIN_BLOCK, BLOCK_S
    if samples_per_day is not None:
        check_positive("samples_per_day", samples_per_day)
        block, seconds = max(block, math.ceil(samples_per_day / BLOCKS_PER_DAY)), 0.0
    watched, groups = reference.watched(has_agreement), len(reference.shares)
    known = MIN_SHIFT / 2 + REFERENCE_ERROR / math.sqrt(reference.counts.sum())
    allowance = np.array([*(known + reference.allowance[watched]), *[known] * groups])
    return DriftPlan(block, seconds, tuple(allowance.tolist()), len(watched), {}, samples_per_day)


@dataclass(frozen=True)
class Alarm:
    """That a stream changed: when it was noticed, since when, and in which column."""

    name: str  # SHIFT or PRIOR_SHIFT
    at: int  # samples seen
    since: int  # samples seen when the sums began to grow
    column: int
    rose: bool


class SequentialTest:
    """Runs over a stream in constant memory; after an alarm its sums begin again.

    A changed class prior may move the means of scores a little, and make them vary more: while it
    alarms, more is taken off their steps.
    """

    def __init__(self, plan: DriftPlan) -> None:
        self.plan = plan
        self.seen = 0
        columns = len(plan.allowance)
        self._sums = np.zeros((2, columns))
        self._since = np.zeros((2, columns), int)
        self.levels = dict.fromkeys(plan.parts(), 0.0)  # sums by their limits: an alarm above 1
        self._prior_blocks = 0  # how long shifts must still be larger to count

    def update(self, values: Float[np.ndarray, "n d"]) -> list[Alarm]:
        """The alarms after one more block."""
        return self.update_mean(values.mean(0, dtype=np.float64), len(values))

    def update_mean(self, mean: Float[np.ndarray, " d"], size: int) -> list[Alarm]:
        """The alarms after one more block of so many samples."""
        allowance = np.array(self.plan.allowance)
        if self._prior_blocks:
            allowance[: self.plan.shift_columns] *= PRIOR_FACTOR
            self._prior_blocks -= 1
        self._sums = advance(self._sums, mean, size, allowance)
        self.seen += size
        self.levels = {
            name: float(self._sums[:, part].max()) / self.plan.limits[name]
            for name, part in self.plan.parts().items()
        }
        alarms = []
        for name, part in self.plan.parts().items():
            sums = self._sums[:, part]
            if sums.max() > self.plan.limits[name]:
                side, k = np.unravel_index(int(sums.argmax()), sums.shape)
                column = int(k) + (part.start or 0)
                since = int(self._since[side, column])
                alarms.append(Alarm(name, self.seen, since, column, bool(side == 0)))
                self._sums[:, part] = 0
                if name == PRIOR_SHIFT:
                    self._prior_blocks = PRIOR_BLOCKS
                    self._sums[:, : self.plan.shift_columns] = 0
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


class ElapsedClock:
    """Seconds that passed between samples, in the order in which they arrived.

    A time before the latest counts as the latest. One that lies more than an hour before tells
    that the latest was ahead of the clock: counting goes on from there.
    """

    def __init__(self) -> None:
        self._latest, self._elapsed = -math.inf, 0.0

    def advance(self, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Seconds elapsed at each sample since the first of all."""
        elapsed = np.empty(len(times))
        for i, at in enumerate(times.tolist()):
            if at > self._latest:
                self._elapsed += at - self._latest if math.isfinite(self._latest) else 0.0
            if at > self._latest or at < self._latest - MAX_STEP_BACK_S:
                self._latest = at
            elapsed[i] = self._elapsed
        return elapsed


class DriftWatch:
    """The sequential test over samples as they come: of a log, or while they are served.

    A block is at least 64 samples and, where their times are known, at least an hour; where they
    are not, what comes in an hour at `samples_per_day`. A block that is not full is not tested yet.
    """

    def __init__(
        self,
        reference: Reference,
        *,
        has_agreement: bool = False,
        samples_per_day: float | None = None,
        false_alarms_per_year: float = 1.0,
    ) -> None:
        self.reference = reference
        self.has_agreement = has_agreement and bool(reference.scale[2] > 0)
        self.plan = plan_blocks(reference, samples_per_day, self.has_agreement)
        self.alarms: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self.tested = 0  # blocks
        self._false_alarms_per_year = false_alarms_per_year
        self._test: SequentialTest | None = None
        self._planning = threading.Thread(target=self.find_limits, daemon=True, name="drift limits")
        self._clock, self._begun = ElapsedClock(), 0.0
        self._sum: np.ndarray | float = 0.0
        self._count = self._seen = 0
        self._full: list[tuple[np.ndarray, int, float | None]] = []  # not tested yet
        self._last: str | None = None
        self._levels: deque[dict[str, float]] = deque(maxlen=POINTS)

    @property
    def watched(self) -> list[int]:
        """The columns of a shift that are watched."""
        return self.reference.watched(self.has_agreement)

    @property
    def status(self) -> str:
        """Names of the alarms, "no alarm", or "starting" before a block was tested."""
        return "no alarm" if self.tested and self.alarm is None else self.alarm or "starting"

    @property
    def alarm(self) -> str | None:
        """Names of the alarms so far."""
        return " and ".join(name for name in NAMES if self.alarms[name]) or None

    @property
    def levels(self) -> dict[str, float]:
        """How far the sums of the last block are to their limits: an alarm from 1 on."""
        return self._levels[-1] if self._levels else dict.fromkeys(NAMES, 0.0)

    def describe(self) -> dict[str, Any]:
        """Status and alarms, and the levels of the last blocks."""
        return {
            "status": self.status,
            "last_alarm": self._last,
            "alarms": {name: self.alarms[name] for name in NAMES},
            "levels": list(itertools.chain(self._levels)),
        }

    def observe(
        self,
        classes: Int[np.ndarray, " n"],
        shift_score: Float[np.ndarray, " n"],
        agreement: Float[np.ndarray, " n"] | None,
        times: Float[np.ndarray, " n"] | None,
    ) -> list[Alarm]:
        """The alarms of samples in the order in which they arrived, once there are limits."""
        described = self.reference.describe(
            classes, shift_score, agreement if self.has_agreement else None
        )
        elapsed = np.zeros(len(classes)) if times is None else self._clock.advance(times)
        self._seen += len(classes)
        start = 0
        while (end := self._find_end(elapsed, start)) is not None:
            self._add(described[start:end])
            at = None if times is None else float(times[end - 1])
            self._full.append((np.asarray(self._sum) / self._count, self._count, at))
            self._sum, self._count, start = 0.0, 0, end
        if start < len(classes):
            self._begun = self._begun if self._count else float(elapsed[start])
            self._add(described[start:])
        return self._run_test()

    def start_finding_limits(self) -> None:
        """Find limits in a thread, some seconds long, once there are samples for a block."""
        if self._planning.ident is None and self._seen >= MIN_BLOCK:
            self._planning.start()

    def find_limits(self) -> None:
        """Simulate years without drift; what comes before is tested with the next samples."""
        from rightly.monitoring.limits import find_limits

        self.plan = find_limits(
            self.reference, self.plan, self._false_alarms_per_year, self.has_agreement
        )
        self._test = SequentialTest(self.plan)

    def _find_end(self, elapsed: Float[np.ndarray, " n"], start: int) -> int | None:
        """Where the block ends that is under way at a row; None where it is not full."""
        enough = start + self.plan.block - self._count  # rows up to which it has enough samples
        if start >= len(elapsed) or enough > len(elapsed):
            return None
        begun = self._begun if self._count else float(elapsed[start])
        last = np.searchsorted(elapsed, begun + self.plan.seconds)
        end = max(enough, int(last) + 1 if self.plan.seconds else 0, start + 1)
        return end if end <= len(elapsed) else None

    def _add(self, described: Float[np.ndarray, "n d"]) -> None:
        self._sum = self._sum + described.sum(0, dtype=np.float64)
        self._count += len(described)

    def _run_test(self) -> list[Alarm]:
        """Test the blocks that are full, once there are limits."""
        found = []
        while self._test is not None and self._full:
            mean, size, at = self._full.pop(0)
            alarms = self._test.update_mean(mean, size)
            self.tested += 1
            self._levels.append(self._test.levels)
            for alarm in alarms:
                self.alarms[alarm.name] += 1
                self._last = f"{alarm.name}, noticed {describe_time(at)}".rstrip()
            found += alarms
        return found


def describe_time(seconds: float | None) -> str:
    """A time as people write it, in UTC; nothing where there is none."""
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
