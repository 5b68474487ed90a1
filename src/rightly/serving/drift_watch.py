"""Drift of what is served: the sequential test of `rightly monitor`, while it happens.

A block is an hour, at least 64 images, so that there are at most as many blocks a year as the
limits are for, however much is served. Each worker watches what it serves, since it started.
"""

import itertools
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from rightly.deployment.outputs import Outputs, view_agreement
from rightly.monitoring.false_alarms import LEAST_BLOCK, plan_test
from rightly.monitoring.sequential_test import CLASS_MIX, SHIFT, Reference, SequentialTest

HOURS_A_DAY = 24
BLOCK_S = 3600.0
POINTS = 32  # of the chart
NAMES = (SHIFT, CLASS_MIX)

log = logging.getLogger(__name__)


class DriftWatch:
    """Whether the images of a stream are still like those of the calibration.

    Limits are simulated in a thread of their own, some seconds long, once there are images for a
    block; until then nothing is said.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        arrays = {name: np.array(value) for name, value in metadata["drift"].items()}
        self._scores = arrays.pop("reference")
        self._reference = Reference(**arrays)
        views = metadata["views"]
        # A budget spares views of some images: then agreement means another thing.
        has_all_views = bool(views) and metadata["passes"] == 1 + len(views)
        self._has_agreement = has_all_views and bool(self._reference.scale[2] > 0)
        self._test: SequentialTest | None = None
        self._sum: np.ndarray | float = 0.0
        self._count, self._begun = 0, time.monotonic()
        self.alarms: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._last: str | None = None
        self._levels: deque[dict[str, float]] = deque(maxlen=POINTS)
        self._planning = threading.Thread(target=self._plan, daemon=True, name="drift limits")

    @classmethod
    def of_model(cls, metadata: Mapping[str, Any]) -> "DriftWatch | None":
        """None where the file does not say what images without drift look like."""
        needed = ("drift", "shift_adaptation")
        is_known = all(metadata.get(name) is not None for name in needed)
        return cls(metadata) if is_known else None

    def observe(self, outputs: Outputs) -> None:
        """Counts the outputs of a batch; ends a block where it is time."""
        assert outputs.shift_score is not None
        score = outputs.shift_score + self._scores[outputs.classes]
        agreement = np.array(view_agreement(outputs), float) if self._has_agreement else None
        described = self._reference.describe(outputs.classes, score, agreement)
        self._sum = self._sum + described.sum(0, dtype=np.float64)
        self._count += len(described)
        if self._planning.ident is None and self._count >= LEAST_BLOCK:
            self._planning.start()
        is_due = time.monotonic() - self._begun >= BLOCK_S and self._count >= LEAST_BLOCK
        if self._test is not None and is_due:
            self._end_block(self._test)

    @property
    def alarm(self) -> str | None:
        """The names of the alarms so far."""
        return " and ".join(name for name in NAMES if self.alarms[name]) or None

    @property
    def status(self) -> str:
        """The names of the alarms so far, "no alarm", or "starting" before there are limits."""
        return "starting" if self._test is None else self.alarm or "no alarm"

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

    def _end_block(self, test: SequentialTest) -> None:
        alarms = test.update_mean(np.asarray(self._sum) / self._count, self._count)
        self._levels.append(test.levels)
        for alarm in alarms:
            self.alarms[alarm.name] += 1
            self._last = f"{alarm.name}, noticed {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}"
            log.warning("drift: %s alarm after %d images", alarm.name, alarm.at)
        self._sum, self._count, self._begun = 0.0, 0, time.monotonic()

    def _plan(self) -> None:
        rate = LEAST_BLOCK * float(HOURS_A_DAY)  # blocks of an hour: larger ones alarm less
        plan = plan_test(self._reference, rate, has_agreement=self._has_agreement)
        self._test = SequentialTest(plan)
