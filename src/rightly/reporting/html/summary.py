"""What a report says of each test set in plain words and counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rightly.decisions import exact_interval
from rightly.reporting.formatting import BETTER, WORSE, mark_change
from rightly.reporting.html.study import Study, StudySet
from rightly.shapes import Confidence, Correct

CONFIDENT = 0.9  # what people take for certain
FEW, FEW_WRONG = 200, 20  # below this an interval is wider than what calibration can change
TESTED = ("brier", "ece")  # a proper score, and the error most people quote
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
class ErrorShare:
    """How many of the predictions above CONFIDENT are wrong, with a 95 % interval."""

    count: int
    wrong: int
    expected: float  # the errors there should be, by the confidence itself
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.wrong / self.count if self.count else math.nan


@dataclass(frozen=True)
class Summary:
    """One test set in words."""

    name: str
    outcome: Outcome
    headline: str
    sentences: Sequence[str]
    before: ErrorShare
    after: ErrorShare
    level: str  # of confidence on average, after calibration


def count_confident_errors(confidence: Confidence, correct: Correct) -> ErrorShare:
    """The predictions above CONFIDENT, and how many of them are wrong."""
    confident = confidence > CONFIDENT
    count, wrong = int(confident.sum()), int((confident & ~correct).sum())
    if not count:
        return ErrorShare(0, 0, 0.0, math.nan, math.nan)
    low, high = exact_interval(wrong, count)
    expected = float((1 - confidence[confident].astype(np.float64)).sum())
    return ErrorShare(count, wrong, expected, low, high)


def determine_outcome(one: StudySet) -> Outcome:
    """What calibration did, by tests of the Brier score and of ECE."""
    if len(one.labels) < FEW or (~one.correct).sum() < FEW_WRONG:
        return "few"
    marks = {mark_change(one.results.change[name]) for name in TESTED}
    if {BETTER, WORSE} <= marks:
        return "mixed"
    return "better" if BETTER in marks else "worse" if WORSE in marks else "same"


def summarise_set(one: StudySet) -> Summary:
    """One test set in words."""
    before, after = (count_confident_errors(*pair) for pair in one.outcomes.values())
    n, accuracy = len(one.labels), float(one.correct.mean())
    headline = (
        f"{_format_share(before)} of predictions above {CONFIDENT} are wrong; "
        f"after calibration {_format_share(after)}."
    )
    sentences = [
        f"{n:,} samples, {100 * accuracy:.1f} % right. Above {CONFIDENT} lie "
        f"{100 * before.count / n:.0f} % of predictions before and "
        f"{100 * after.count / n:.0f} % after.",
        _describe_levels(one),
    ]
    outcome = determine_outcome(one)
    if outcome == "few":
        sentences.append(
            f"With {n} samples and {int((~one.correct).sum())} mistakes, no statement about "
            "calibration is safe: collect more before you act on this."
        )
    level = describe_level(one.after, one.correct)
    return Summary(one.name, outcome, headline, sentences, before, after, level)


def describe_level(confidence: Confidence, correct: Correct) -> str:
    """Whether confidence is right on average."""
    gap = float(confidence.mean() - correct.mean())
    if abs(gap) < NOTICEABLE:
        return "about right"
    return f"too {'high' if gap > 0 else 'low'} by {100 * abs(gap):.0f} points"


def _describe_levels(one: StudySet) -> str:
    before, after = (describe_level(*pair) for pair in one.outcomes.values())
    if before == after:
        return f"Confidence is {before} on average, before and after."
    return f"Confidence was {before} on average; after calibration it is {after}."


def _format_share(share: ErrorShare) -> str:
    if not share.count:
        return "none (there are no such predictions)"
    return f"{100 * share.share:.1f}\N{NO-BREAK SPACE}%"


def summarise_all(summaries: Sequence[Summary]) -> str:
    """The whole page in two sentences."""
    by_outcome: dict[Outcome, list[str]] = {}
    for one in summaries:
        by_outcome.setdefault(one.outcome, []).append(one.name)
    if len(by_outcome) == 1:
        ((outcome, names),) = by_outcome.items()
        every = {1: names[0], 2: "both test sets"}.get(len(names), f"all {len(names)} test sets")
        text = f"{WORDS[outcome]} on {every}."
    else:
        parts = [f"{WORDS[x].lower()} on {_join(names)}" for x, names in by_outcome.items()]
        joined = "; ".join(parts)
        text = f"{joined[0].upper()}{joined[1:]}."
    by_level: dict[str, list[str]] = {}
    for one in summaries:
        if one.outcome != "few":
            by_level.setdefault(one.level, []).append(one.name)
    if not by_level:
        return text
    levels = _join([f"{level} on {_join(names)}" for level, names in by_level.items()])
    return f"{text} After it, confidence is on average {levels}."


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def name_classes(study: Study) -> list[str]:
    """Names of all classes that occur."""
    most = max(int(max(one.predicted.max(), one.labels.max())) for one in study.sets)
    return [name_class(study, k) for k in range(most + 1)]


def name_class(study: Study, k: int | np.integer) -> str:
    """The name of a class, or its number where it has none."""
    return str(k) if study.class_names is None else study.class_names[int(k)]
