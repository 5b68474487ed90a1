"""A log under watch: the accuracy that is expected over time, and alarms."""

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from rightly.calibrators import AnyCalibrator, as_fitted
from rightly.calibrators.drift_reference import CHANNELS
from rightly.calibrators.shift_adaptation import ShiftAdaptation, require_shift
from rightly.calibrators.solvers.log_odds import MAX_LOG_ODDS
from rightly.decisions.expected_accuracy import ExpectedAccuracy
from rightly.monitoring.false_alarms import plan_test
from rightly.monitoring.logs import UNKNOWN, Log, read_log
from rightly.monitoring.sequential_test import (
    CLASS_MIX,
    GROUPS,
    SHIFT,
    Alarm,
    Plan,
    Reference,
    SequentialTest,
)

LEAST_WINDOW, MOST_WINDOWS = 512, 20
SECONDS_A_DAY = 86400.0


@dataclass(frozen=True)
class LogWindow:
    """Some rows of a log: mean confidence as logged, the context, and the expected accuracy."""

    first: int
    rows: int
    time: float | None  # of the first row
    confidence: float
    context: float
    expected_accuracy: ExpectedAccuracy | None  # None where no range was learned
    accuracy: float | None  # where there are labels


@dataclass(frozen=True)
class NamedAlarm:
    """What changed, in words: the first alarm of its name, and how many there were."""

    name: str
    what: str
    row: int
    since_row: int
    time: float | None
    count: int


@dataclass(frozen=True)
class Monitored:
    """What a log shows."""

    rows: int
    samples_per_day: float
    false_alarms_per_year: float
    plan: Plan
    watched: tuple[str, ...]
    alarms: tuple[NamedAlarm, ...]
    windows: tuple[LogWindow, ...]

    @property
    def status(self) -> str:
        return " and ".join(alarm.name for alarm in self.alarms) or "no alarm"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = asdict(self)
        for window, plain in zip(self.windows, values["windows"], strict=True):
            expected = window.expected_accuracy
            plain["expected_accuracy"] = None if expected is None else expected._asdict()
        return {"status": self.status, **values}


def monitor_log(
    log: str | os.PathLike[str],
    calibrator: AnyCalibrator,
    *,
    samples_per_day: float | None = None,
    false_alarms_per_year: float = 1.0,
    window: int | None = None,
) -> Monitored:
    """Tests a log for drift and says what accuracy is expected over time.

    `samples_per_day` follows from the times in the log where it has any. A `window` is by default
    a twentieth of the log, at least 512 rows.
    """
    fitted = as_fitted(calibrator).calibrator
    context = require_shift(fitted)
    if window is not None and window < 1:
        raise ValueError(f"window must be a number of rows from 1 on, got {window}")
    rows = read_log(log)
    count = len(context.reference)
    if rows.classes.max() >= count:
        raise ValueError(
            f"{log} must hold classes below {count} like those {fitted.title} was fitted on, got "
            f"{rows.classes.max()}"
        )
    reference = Reference(**context.drift.arrays())
    has_agreement = rows.agreement is not None and bool(reference.scale[2] > 0)
    if samples_per_day is None:
        samples_per_day = _find_rate(rows, log)
    plan = plan_test(reference, samples_per_day, false_alarms_per_year, has_agreement=has_agreement)
    score = rows.shift_score + context.reference.cpu().numpy()[rows.classes]
    score = np.clip(score, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    described = reference.describe(rows.classes, score, rows.agreement if has_agreement else None)
    test = SequentialTest(plan)
    alarms = [
        alarm
        for start in range(0, len(rows), plan.block)
        for alarm in test.update(described[start : start + plan.block])
    ]
    watched = tuple(CHANNELS[k] for k in reference.watched(has_agreement))
    names = fitted.class_names
    size = window or max(LEAST_WINDOW, -(-len(rows) // MOST_WINDOWS))
    return Monitored(
        len(rows),
        samples_per_day,
        false_alarms_per_year,
        plan,
        watched,
        tuple(
            _name_alarms(
                [alarm for alarm in alarms if alarm.name == name], rows, watched, reference, names
            )
            for name in (SHIFT, CLASS_MIX)
            if any(alarm.name == name for alarm in alarms)
        ),
        tuple(
            _look_at(context, rows, score, slice(start, start + size))
            for start in range(0, len(rows), size)
        ),
    )


def _find_rate(rows: Log, log: object) -> float:
    span = 0.0 if rows.time is None else float(rows.time[-1] - rows.time[0])
    if span <= 0:
        raise ValueError(
            f"samples_per_day is needed, because {log} has no times to tell it: how many "
            "predictions there are in a day decides how often alarms would be false"
        )
    return len(rows) * SECONDS_A_DAY / span


def _look_at(context: ShiftAdaptation, rows: Log, score: np.ndarray, part: slice) -> LogWindow:
    chosen = rows.classes[part]
    batch = context.shrink(float(rows.shift_score[part].mean()), len(chosen))
    confidence = torch.from_numpy(score[part]).sigmoid().to(context.reference.device)
    expected = None
    if len(context.misses) > 1:
        expected = context.expected_accuracy(confidence, batch, 0.9)
    accuracy = None
    if rows.label is not None:
        is_known = rows.label[part] != UNKNOWN
        if is_known.any():
            accuracy = float((chosen == rows.label[part])[is_known].mean())
    return LogWindow(
        part.start,
        len(chosen),
        None if rows.time is None else float(rows.time[part.start]),
        float(rows.confidence[part].mean()),
        batch.value,
        expected,
        accuracy,
    )


def _name_alarms(
    alarms: list[Alarm],
    rows: Log,
    watched: tuple[str, ...],
    reference: Reference,
    class_names: tuple[str, ...] | None,
) -> NamedAlarm:
    first = alarms[0]
    direction = "rose" if first.rose else "fell"
    if first.name == SHIFT:
        what = f"{watched[first.column]} {direction}"
    else:
        k = _find_class(first, rows, reference, first.column - len(watched))
        what = f"share of {class_names[k] if class_names else f'class {k}'} {direction}"
    return NamedAlarm(
        first.name,
        what,
        first.at - 1,
        first.since,
        None if rows.time is None else float(rows.time[first.at - 1]),
        len(alarms),
    )


def _find_class(alarm: Alarm, rows: Log, reference: Reference, group: int) -> int:
    """The class of a group whose share changed most, in the direction of the alarm."""
    count = len(reference.counts)
    found = np.bincount(rows.classes[alarm.since : alarm.at], minlength=count)
    change = found / max(found.sum(), 1) - reference.counts / reference.counts.sum()
    members = np.arange(group, count, GROUPS)
    return int(members[(change if alarm.rose else -change)[members].argmax()])


def describe_time(seconds: float | None) -> str:
    """A time as people write it, in UTC; nothing where there is none."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
