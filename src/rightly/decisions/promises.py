"""What a stored model promises of the images that it is shown: of its threshold, of its sets."""

from collections.abc import Mapping
from typing import Any

from rightly.decisions.stored import HOLDS_FOR, NOT_COVERED, Decision, format_share

UNKNOWN = f"{HOLDS_FOR}, which the server cannot know"


def find_lapse(
    metadata: Mapping[str, Any], *, adapts: bool = False, alarm: str | None = None
) -> str | None:
    """Why nothing is promised of the images that a model is shown now; None if no reason is known.

    None does not mean that all is well: that images are like the calibration data is for the user
    to know.
    """
    if adapts or metadata.get("adapted"):
        return NOT_COVERED
    return None if alarm is None else f"not covered: drift is alarmed ({alarm})"


def describe_promises(metadata: Mapping[str, Any], lapse: str | None = None) -> list[str]:
    """What is promised of the threshold and of sets, as far as anything was."""
    both = describe_threshold_promise(metadata, lapse), describe_served_sets(metadata, lapse)
    return [text for text in both if text is not None]


def describe_threshold_promise(metadata: Mapping[str, Any], lapse: str | None) -> str | None:
    """What is promised of the accepted, or the lapse of that; None where nothing was promised."""
    decision = Decision.of_metadata(metadata)
    if decision is None or decision.kind != "guaranteed":
        return None
    return lapse or f"{decision.describe()}; {UNKNOWN}"


def describe_served_sets(metadata: Mapping[str, Any], lapse: str | None) -> str | None:
    """What is promised of prediction sets, or the lapse of that; None where there are none."""
    sets = metadata.get("sets")
    if sets is None:
        return None
    return lapse or f"{describe_set_promise(sets, metadata['class_count'])}; {UNKNOWN}"


def describe_set_promise(sets: Mapping[str, Any], class_count: int) -> str:
    """What prediction sets promise, and for which images; from `ConformalSets.describe`."""
    text = (
        f"Prediction sets ({sets['score']}) hold the true class of "
        f"{format_share(sets['coverage'])} of images like the {sets['samples']:,} held out"
    )
    if not sets["class_conditional"]:
        interval = sets.get("coverage_interval")
        if interval is None:
            return text
        low, high = (f"{100 * end:.1f} %" for end in interval)
        return f"{text}: given these, of {low} to {high} with probability 0.95"
    marginal = sets["marginal_classes"]
    text += f", in each of {class_count - marginal} classes"
    if marginal:
        text += f" ({marginal} more had too few images and take the threshold of all)"
    return text
