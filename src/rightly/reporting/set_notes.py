"""Prediction sets in words: nominal and observed coverage."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rightly.decisions.decision import ADAPTED, describe_set_guarantee, describe_void
from rightly.reporting.formatting import format_percent

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.evaluation.set_quality import SetQuality

SHOWN = 3  # classes that are named


def describe_sets(fitted: "Calibrator", quality: "Mapping[str, SetQuality]") -> list[str]:
    """The guarantee, and size and coverage on each test set; no coverage after adapting."""
    if fitted.sets is None or not quality:
        return []
    notes = []
    if all(one.coverage is None for one in quality.values()):
        notes.append(
            f"Prediction sets ({fitted.sets.score}): {describe_void(ADAPTED)}, no coverage is "
            "claimed."
        )
    else:
        text = describe_set_guarantee(fitted.sets.describe(), fitted.sets.class_count)
        notes.append(f"{text}.")
    for name, one in quality.items():
        notes.append(f"On {name}, {describe_quality(one)}.")
        notes += describe_least_covered(one, fitted.sets.coverage, fitted.sets.class_conditional)
    return notes


def describe_least_covered(one: "SetQuality", nominal: float, class_conditional: bool) -> list[str]:
    """The classes whose sets hold them least often, and how many lie below the nominal coverage."""
    if not one.classes:
        return []
    worst = [
        f"{each.name or f'class {each.number}'} {_percent(each.coverage)} ({_percent(each.low)} to "
        f"{_percent(each.high)}, of {each.samples:,})"
        for each in one.classes[:SHOWN]
    ]
    below = sum(each.high < nominal for each in one.classes)
    text = (
        f"Least covered there: {', '.join(worst)}; of {len(one.classes)} classes {below} have a "
        f"95 % interval below {_percent(nominal)}"
    )
    if below and not class_conditional:
        text += ". Coverage is not guaranteed by class: for that, fit with class_conditional=True "
        text += "(--class-conditional)"
    return [f"{text}."]


def describe_quality(one: "SetQuality") -> str:
    """Coverage, where one is claimed, and size on one test set."""
    text = "sets "
    if one.coverage is not None:
        assert one.coverage_low is not None and one.coverage_high is not None
        text += (
            f"hold the true class of {_percent(one.coverage)} (95 % interval "
            f"{_percent(one.coverage_low)} to {_percent(one.coverage_high)}) and "
        )
    return text + (
        f"have {one.mean_size:.2f} classes on average; {_percent(one.single)} have one class, "
        f"{_percent(one.empty)} none"
    )


def _percent(share: float) -> str:
    return f"{format_percent(share)} %"
