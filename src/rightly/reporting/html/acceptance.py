"""What accepting from a threshold means on each test set, for the page and for its script."""

import base64
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rightly.decisions import Decision
from rightly.reporting.html.study import Study, StudySet
from rightly.shapes import Confidence, Correct


def compute_points(one: StudySet, threshold: float) -> dict[str, Decision]:
    """What the threshold accepts, before and after."""
    return {
        when: Decision.at(threshold, confidence, correct)
        for when, (confidence, correct) in one.outcomes.items()
    }


def read_target(decision: Decision | None) -> dict[str, float | None] | None:
    """Guaranteed or approximate accuracy of accepted predictions, and confidence level."""
    if decision is None or decision.max_error is None:
        return None
    return {
        "accuracy": round(1 - decision.max_error, 12),
        "confidence_level": decision.confidence_level,
    }


def read_costs(decision: Decision | None) -> dict[str, float] | None:
    """What the decision took errors, reviews and right answers to cost."""
    if decision is None or decision.costs is None:
        return None
    return {name: decision.costs[name] for name in ("error", "review", "gain")}


def shorten(threshold: float, sets: Sequence[StudySet]) -> float:
    """The shortest number at or below a threshold that accepts the same samples."""

    def count(value: float) -> list[int]:
        return [int((c >= value).sum()) for one in sets for c, _ in one.outcomes.values()]

    exact = count(threshold)
    for digits in range(3, 16):
        short = math.floor(threshold * 10**digits) / 10**digits
        if count(short) == exact:
            return short
    return threshold


def write_outcomes(shown: Study) -> str:
    """Every confidence and whether it is right, for the script; no user text can end it."""
    sets = [{when: _encode(*pair) for when, pair in one.outcomes.items()} for one in shown.sets]
    return json.dumps(sets, separators=(",", ":"))


def _encode(confidence: Confidence, correct: Correct) -> dict[str, Any]:
    """In falling order, as bytes: numbers in as few as hold them exactly, eight answers a byte."""
    order = np.argsort(-confidence, kind="stable")
    values = confidence[order].astype("<f8")
    narrow = values.astype("<f4")
    is_narrow = bool((narrow == values).all())
    return {
        "type": "f4" if is_narrow else "f8",
        "confidence": base64.b64encode((narrow if is_narrow else values).tobytes()).decode(),
        "right": base64.b64encode(np.packbits(correct[order]).tobytes()).decode(),
    }
