"""What a report says first, in plain words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rightly.evaluation.results import SIGNIFICANT
from rightly.metrics import METRICS
from rightly.metrics.curves import wilson
from rightly.reporting.html.study import TestSet

SURE = 0.9  # what people take for certain
FEW, FEW_WRONG = 200, 20  # below this an interval is wider than what calibration can change
JUDGES = ("brier", "ece")  # a proper score, and the error most people quote
NOTICEABLE = 0.02  # a mean confidence this far from accuracy is worth a sentence

Outcome = Literal["better", "same", "worse", "mixed", "few"]
WORDS: dict[Outcome, str] = {
    "better": "Calibration helped",
    "same": "No detectable difference",
    "worse": "Calibration made it worse",
    "mixed": "Better in one way, worse in another",
    "few": "Too few samples to tell",
}


@dataclass(frozen=True)
class Share:
    """How many of the predictions above SURE are wrong."""

    count: int
    wrong: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.wrong / self.count if self.count else math.nan


@dataclass(frozen=True)
class Verdict:
    name: str
    outcome: Outcome
    headline: str
    sentences: Sequence[str]
    before: Share
    after: Share
    level: str  # of confidence on average, after calibration


def sure_and_wrong(confidence: np.ndarray, correct: np.ndarray) -> Share:
    """The predictions above SURE, and how many of them are wrong, with a 95 % interval."""
    sure = confidence > SURE
    count, wrong = int(sure.sum()), int((sure & ~correct).sum())
    if not count:
        return Share(0, 0, math.nan, math.nan)
    low, high = wilson(np.array([wrong / count]), np.array([float(count)]))
    return Share(count, wrong, float(low[0]), float(high[0]))


def outcome(one: TestSet) -> Outcome:
    """What calibration did, by tests of the Brier score and of ECE."""
    if len(one.labels) < FEW or (~one.correct).sum() < FEW_WRONG:
        return "few"
    found = set()
    for name in JUDGES:
        change = one.changes[name]
        if not math.isnan(change.p) and change.p <= SIGNIFICANT:
            lower = bool(METRICS[name].lower_is_better)
            found.add("better" if (change.value < 0) == lower else "worse")
    if len(found) == 2:
        return "mixed"
    return "better" if "better" in found else "worse" if "worse" in found else "same"


def verdict(one: TestSet) -> Verdict:
    """One test set in words."""
    before, after = (sure_and_wrong(c, one.correct) for c in (one.before, one.after))
    accuracy = float(one.correct.mean())
    headline = (
        f"{_share(before)} of predictions above {SURE} are wrong; "
        f"after calibration {_share(after)}."
    )
    sentences = [
        f"{len(one.labels):,} samples, {100 * accuracy:.1f} % right. Above {SURE} lie "
        f"{100 * before.count / len(one.labels):.0f} % of predictions before and "
        f"{100 * after.count / len(one.labels):.0f} % after.",
        _honest(one),
    ]
    found = outcome(one)
    if found == "few":
        sentences.append(
            f"With {len(one.labels)} samples and {int((~one.correct).sum())} mistakes, no "
            "statement about calibration is safe: collect more before you act on this."
        )
    return Verdict(one.name, found, headline, sentences, before, after, level(one, one.after))


def level(one: TestSet, confidence: np.ndarray) -> str:
    """Whether confidence is right on average."""
    gap = float(confidence.mean() - one.correct.mean())
    if abs(gap) < NOTICEABLE:
        return "about right"
    return f"too {'high' if gap > 0 else 'low'} by {100 * abs(gap):.0f} points"


def _honest(one: TestSet) -> str:
    said = [level(one, confidence) for confidence in (one.before, one.after)]
    if said[0] == said[1]:
        return f"Confidence is {said[0]} on average, before and after."
    return f"Confidence was {said[0]} on average; after calibration it is {said[1]}."


def _share(share: Share) -> str:
    if not share.count:
        return "none (there are no such predictions)"
    percent = 100 * share.share
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"


def summary(verdicts: Sequence[Verdict]) -> str:
    """The whole page in two sentences."""
    by: dict[Outcome, list[str]] = {}
    for one in verdicts:
        by.setdefault(one.outcome, []).append(one.name)
    if len(by) == 1:
        ((found, names),) = by.items()
        every = {1: names[0], 2: "both test sets"}.get(len(names), f"all {len(names)} test sets")
        text = f"{WORDS[found]} on {every}."
    else:
        parts = [f"{WORDS[found].lower()} on {_and(names)}" for found, names in by.items()]
        text = _sentence("; ".join(parts))
    levels: dict[str, list[str]] = {}
    for one in verdicts:
        if one.outcome != "few":
            levels.setdefault(one.level, []).append(one.name)
    if not levels:
        return text
    said = _and([f"{found} on {_and(names)}" for found, names in levels.items()])
    return f"{text} After it, confidence is on average {said}."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
