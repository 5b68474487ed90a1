"""How results are written, once for terminal, page, figures, LaTeX, Markdown and cards.

A metric's record says its direction and unit: shares are shown in % with two digits, others as
they are with three.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rightly.evaluation.results import SIGNIFICANT, Result, unique
from rightly.metrics import METRICS

BETTER, WORSE, SAME, REFERENCE, WITHIN_NOISE = "▲", "▼", "·", "◆", "°"
WORDS = {BETTER: "better", WORSE: "worse", SAME: "no detectable difference"}
NOT_AVAILABLE = "n/a"


def format_heading(metric: str) -> str:
    """A metric's name with an arrow towards what is better."""
    return f"{metric}{_arrow(metric)}"


def format_title(metric: str) -> str:
    """A metric's title in the literature with an arrow towards what is better."""
    return f"{METRICS[metric].title}{_arrow(metric)}"


def _arrow(metric: str) -> str:
    lower = METRICS[metric].lower_is_better
    return "" if lower is None else " ↓" if lower else " ↑"


def display_factor(metric: str) -> int:
    """What a value is multiplied by to be shown."""
    return 100 if METRICS[metric].unit == "%" else 1


def display_digits(metric: str) -> int:
    """How many digits of a value are shown after the point."""
    return 2 if METRICS[metric].unit == "%" else 3


def format_number(metric: str, value: float, *, sign: str = "", fewer: int = 0) -> str:
    """One value of a metric as it is shown, with its sign if `sign` is "+"."""
    if math.isnan(value):
        return NOT_AVAILABLE
    # z: no minus before zero
    return format(
        display_factor(metric) * value, f"{sign}z.{max(display_digits(metric) - fewer, 0)}f"
    )


def format_value(result: Result) -> str:
    return format_number(result.metric, result.value)


def format_mean(metric: str, values: Sequence[float]) -> str:
    """The mean over seeds, with the standard deviation where there are several."""
    mean = float(np.mean(values)) if values else math.nan
    text = format_number(metric, mean)
    if len(values) > 1 and not math.isnan(mean):
        text += f" ±{format_number(metric, float(np.std(values)))}"
    return text


def format_interval(result: Result) -> str:
    """The two ends of a value's interval, one digit shorter than the value; empty without one."""
    if math.isnan(result.low):
        return ""
    low, high = (format_number(result.metric, end, fewer=1) for end in (result.low, result.high))
    return f"{low}–{high}" if result.low >= 0 else f"{low} to {high}"


def format_change(result: Result) -> str:
    return format_number(result.metric, result.value, sign="+")


def format_change_interval(result: Result) -> str:
    """The two ends of a change's interval, with their signs; empty without one."""
    if math.isnan(result.low):
        return ""
    ends = (format_number(result.metric, end, sign="+") for end in (result.low, result.high))
    return " to ".join(ends)


def format_percent(share: float | None, digits: int = 1) -> str:
    """A share without a metric, in %; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f}"


def describe_accuracy(accuracy: Mapping[str, float]) -> list[str]:
    """The classifier's accuracy by test set, in one line; nothing where it is not known."""
    parts = [f"{name} {format_percent(share)} %" for name, share in accuracy.items()]
    return [f"Accuracy: {', '.join(parts)}."] if parts else []


def describe_adapting(adapt: bool | int) -> list[str]:
    """To what calibrators were adapted, in one line; nothing where they were not."""
    if adapt is False:
        return []
    to = "each test set" if adapt is True else f"each {adapt} rows of a test set in their order"
    return [f"Adapted to {to}, without labels."]


def format_units(metrics: Iterable[str]) -> str:
    """What units the values of some metrics are shown in."""
    others = [metric for metric in unique(metrics) if METRICS[metric].unit != "%"]
    if not others:
        return "in %"
    return f"in %, except {' and '.join(METRICS[metric].title for metric in others)}"


def mark_result(result: Result, base: float) -> str:
    """Whether a value differs from that of the reference, by the corrected p value."""
    lower = METRICS[result.metric].lower_is_better
    if math.isnan(result.p_holm) or lower is None:
        return ""
    if result.p_holm > SIGNIFICANT or result.value == base:
        return SAME
    return BETTER if (result.value < base) == lower else WORSE


def mark_change(change: Result) -> str:
    """Whether a change is one for the better."""
    return mark_result(change, 0.0)


def describe_mark(mark: str) -> str:
    """A mark with its words: "▲ better"."""
    return f"{mark} {WORDS[mark]}" if mark else ""


def is_within_noise(result: Result) -> bool:
    """Whether a calibration error is no larger than perfect calibration scores by chance."""
    return result.value <= result.floor_high


def find_best(metric: str, values: Iterable[float]) -> float:
    """The best of some values of a metric; nan where none is better."""
    lower = METRICS[metric].lower_is_better
    defined = [value for value in values if not math.isnan(value)]
    if not defined or lower is None:
        return math.nan
    return min(defined) if lower else max(defined)


def describe_floor(results: Sequence[Result], reference: str) -> list[str]:
    """What ECE the reference would score if it were perfectly calibrated."""
    floors = [
        row
        for row in results
        if row.calibrator == reference and row.metric == "ece" and not math.isnan(row.floor)
    ]
    return [
        f"ece noise floor: perfectly calibrated, {reference} would score "
        f"{format_number('ece', row.floor)} on average and below "
        f"{format_number('ece', row.floor_high)} 95 times in 100; {WITHIN_NOISE} marks values "
        "within their own floor"
        for row in floors[:1]
    ]


def describe_tests(metric: str, marks: Sequence[str], reference: str) -> str:
    """How many are better, worse, or cannot be told from the reference; empty without tests."""
    counts = {mark: list(marks).count(mark) for mark in (BETTER, WORSE, SAME)}
    if not any(counts.values()):
        return ""
    if not counts[BETTER] + counts[WORSE]:
        return f"{metric}: no detectable difference between {reference} and any other"
    parts = [f"{counts[mark]} {WORDS[mark]}" for mark in (BETTER, WORSE) if counts[mark]]
    if counts[SAME]:
        parts.append(f"{counts[SAME]} with {WORDS[SAME]}")
    return f"{metric}, beside {reference}: {', '.join(parts)}"


def describe_interval() -> str:
    """What the interval beside a value is."""
    return (
        "Beside each value an approximate 95 % confidence interval (bootstrap, centred at the "
        "value) for its value in the population that the test set was drawn from; for errors in "
        "bins, for their expected value at this size."
    )


def describe_bootstrap(
    reference: str, resamples: int, seed: int, metrics: Iterable[str]
) -> list[str]:
    """What marks and numbers mean, below a table with intervals."""
    return [
        f"{BETTER} better and {WORSE} worse than {reference} ({REFERENCE}), {SAME} no detectable "
        f"difference: paired bootstrap, {resamples} resamples, seed {seed}, "
        f"Holm-corrected over methods, at {100 * SIGNIFICANT:.0f} %.",
        f"{describe_interval()} Values {format_units(metrics)}; binned errors have 25 bins.",
    ]
