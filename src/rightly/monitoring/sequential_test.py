"""A sequential test for drift: two-sided CUSUM charts (Page, 1954) with one limit for each name.

Samples are described by standardised columns: context, confidence and agreement of views, each
counted from centres that a changed class mix hardly moves (`drift_reference`), and shares of
predicted classes. The first alarm as "shift", the others as "class mix". `false_alarms` finds the
limits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

SHIFT, CLASS_MIX = "shift", "class mix"
GROUPS = 16  # of classes, whose shares are watched: with fewer classes each is one
MIX_BLOCKS = 32  # after an alarm of the class mix, in which shifts must be larger to count
MIX_FACTOR = 2.0  # by how much
LEAST_SHARE = 0.02  # whose standard deviation is the least that shares are divided by


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
    """Runs over a stream in constant memory; after an alarm its sums begin again.

    A changed class mix may move the means of scores a little, and make them vary more: while it
    alarms, more is taken off their steps.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen = 0
        columns = len(plan.allowance)
        self._sums = np.zeros((2, columns))
        self._since = np.zeros((2, columns), int)
        self.levels = dict.fromkeys(plan.parts(), 0.0)  # sums by their limits: an alarm above 1
        self._mix_blocks = 0  # how long shifts must still be larger to count

    def update(self, values: Float[np.ndarray, "n d"]) -> list[Alarm]:
        """The alarms after one more block."""
        return self.update_mean(values.mean(0, dtype=np.float64), len(values))

    def update_mean(self, mean: Float[np.ndarray, " d"], size: int) -> list[Alarm]:
        """The alarms after one more block of so many samples."""
        allowance = np.array(self.plan.allowance)
        if self._mix_blocks:
            allowance[: self.plan.shift_columns] *= MIX_FACTOR
            self._mix_blocks -= 1
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
                if name == CLASS_MIX:
                    self._mix_blocks = MIX_BLOCKS
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
