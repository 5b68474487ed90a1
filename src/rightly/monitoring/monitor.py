"""A log of predictions under watch: the accuracy that is expected over time, and drift alarms."""

import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rightly.checks import check_count
from rightly.decisions import Decision
from rightly.decisions.decision import drift_alarm
from rightly.decisions.expected_accuracy import ExpectedAccuracy, ShiftConstants
from rightly.monitoring.drift import (
    GROUPS,
    NAMES,
    SHIFT,
    Alarm,
    DriftPlan,
    DriftWatch,
    Reference,
)
from rightly.monitoring.logs import UNKNOWN, Log, read_log
from rightly.monitoring.stream import RANGE_LEVEL

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator

MIN_WINDOW, MAX_WINDOWS = 512, 20
SECONDS_PER_DAY = 86400.0
MIN_SPAN_S = SECONDS_PER_DAY  # of a log that tells how many samples there are in a day


@dataclass(frozen=True)
class LogWindow:
    """Some rows of a log: mean confidence as logged, shift estimate and expected accuracy."""

    first: int
    rows: int
    time: float | None  # of the first row
    confidence: float
    shift_estimate: float
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
class DriftReport:
    """Drift alarms of a log and its expected accuracy over time."""

    status: str  # as `rightly serve` gives it: "starting" before a block was tested
    rows: int
    blocks: int  # that were tested
    samples_per_day: float | None  # as given, or by the times of a day of log and more
    false_alarms_per_year: float
    plan: DriftPlan
    watched: tuple[str, ...]
    alarms: tuple[NamedAlarm, ...]
    windows: tuple[LogWindow, ...]
    decision: Decision | None = None  # of the calibrator, void after an alarm

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = asdict(self)
        for window, plain in zip(self.windows, values["windows"], strict=True):
            expected = window.expected_accuracy
            plain["expected_accuracy"] = None if expected is None else expected._asdict()
        return values


def monitor_log(
    log: str | os.PathLike[str],
    calibrator: "Calibrator",
    *,
    samples_per_day: float | None = None,
    false_alarms_per_year: float = 1.0,
    window: int | None = None,
) -> DriftReport:
    """Test a log for drift and estimate the accuracy over time.

    Blocks are measured by the times of the log, or in samples at `samples_per_day`. A `window` is
    by default a twentieth of the log, at least 512 rows.
    """
    from rightly.calibrators import check_calibrator
    from rightly.calibrators.drift_reference import CHANNELS
    from rightly.calibrators.shift_adaptation import require_shift

    fitted = check_calibrator(calibrator)
    shift = require_shift(fitted)
    if window is not None:
        check_count("window", window)
    rows, reference = read_log(log), Reference.of(shift.describe_drift())
    count = len(reference.scores)
    if rows.classes.max() >= count:
        raise ValueError(
            f"{log} must hold classes below {count} like those {fitted.title} was fitted on, got "
            f"{rows.classes.max()}"
        )
    if samples_per_day is None and rows.time is None:
        raise ValueError(
            f"samples_per_day is needed, because {log} has no times: how many predictions there "
            "are in a day decides how often alarms would be false"
        )
    watch = DriftWatch(
        reference,
        has_agreement=rows.agreement is not None,
        samples_per_day=samples_per_day,
        false_alarms_per_year=false_alarms_per_year,
    )
    watch.find_limits()
    alarms = watch.observe(rows.classes, rows.shift_score, rows.agreement, rows.time)
    watched = tuple(CHANNELS[k] for k in watch.watched)
    by_name = ([alarm for alarm in alarms if alarm.name == name] for name in NAMES)
    size = window or max(MIN_WINDOW, -(-len(rows) // MAX_WINDOWS))
    constants = shift.constants(RANGE_LEVEL)
    return DriftReport(
        watch.status,
        len(rows),
        watch.tested,
        samples_per_day or _find_rate(rows),
        false_alarms_per_year,
        watch.plan,
        watched,
        tuple(
            _name_alarms(named, rows, watched, reference, fitted.class_names)
            for named in by_name
            if named
        ),
        tuple(
            _measure_window(constants, reference, rows, slice(start, start + size))
            for start in range(0, len(rows), size)
        ),
        _void(fitted.decision, watch.alarm),
    )


def _void(decision: Decision | None, alarm: str | None) -> Decision | None:
    """The decision, void after an alarm."""
    if decision is None or decision.void is not None or alarm is None:
        return decision
    return decision.voided(drift_alarm(alarm))


def _find_rate(rows: Log) -> float | None:
    """Samples per day; None where the log spans less than one."""
    span = 0.0 if rows.time is None else float(rows.time.max() - rows.time.min())
    return len(rows) * SECONDS_PER_DAY / span if span >= MIN_SPAN_S else None


def _measure_window(
    constants: ShiftConstants, reference: Reference, rows: Log, part: slice
) -> LogWindow:
    chosen, shift_score = rows.classes[part], rows.shift_score[part]
    estimate = constants.estimate(float(shift_score.mean()), len(chosen))
    confidence = reference.score_confidence(chosen, shift_score)[1]
    expected = constants.expect_accuracy(constants.adjust(confidence, estimate), estimate)
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
        estimate,
        expected if math.isfinite(expected.low) else None,
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
