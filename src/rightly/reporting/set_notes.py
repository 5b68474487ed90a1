"""Prediction sets in words: what they promise, and what they kept on test sets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rightly.reporting.formatting import format_percent

if TYPE_CHECKING:
    from rightly.calibrators import ConformalSets, FittedCalibrator
    from rightly.evaluation.set_quality import SetQuality


def describe_promise(sets: "ConformalSets") -> str:
    """What the sets promise, and for which images."""
    text = (
        f"Prediction sets ({sets.score}) hold the true class of {_percent(sets.coverage)} of "
        f"images like the {sets.samples:,} held out"
    )
    interval = sets.coverage_interval()
    if interval is not None:
        low, high = map(_percent, interval)
        return f"{text}: given these, of {low} to {high} with probability 0.95."
    text += f", in each of {sets.class_count - sets.marginal} classes"
    if sets.marginal:
        text += f" ({sets.marginal} more had too few images and take the threshold of all)"
    return f"{text}."


def describe_sets(fitted: "FittedCalibrator", quality: "Mapping[str, SetQuality]") -> list[str]:
    """The promise, and for each test set size and coverage; no coverage after adapting."""
    if fitted.sets is None or not quality:
        return []
    notes = []
    if all(one.coverage is None for one in quality.values()):
        notes.append(
            f"Prediction sets ({fitted.sets.score}) of an adapted calibrator: no coverage is "
            "claimed."
        )
    else:
        notes.append(describe_promise(fitted.sets))
    for name, one in quality.items():
        text = f"On {name}, sets "
        if one.coverage is not None:
            assert one.coverage_low is not None and one.coverage_high is not None
            text += (
                f"hold the true class of {_percent(one.coverage)} (95 % interval "
                f"{_percent(one.coverage_low)} to {_percent(one.coverage_high)}) and "
            )
        text += (
            f"have {one.mean_size:.2f} classes on average; {_percent(one.single)} have one class, "
            f"{_percent(one.empty)} none."
        )
        notes.append(text)
    return notes


def _percent(share: float) -> str:
    return f"{format_percent(share)} %"
