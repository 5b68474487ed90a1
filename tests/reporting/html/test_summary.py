"""What a report says in words is what the arrays say."""

import dataclasses

import numpy as np
import pytest

from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.reporting.html.summary import (
    count_confident_errors,
    determine_outcome,
    summarise_all,
    summarise_set,
)
from tests.reporting.html.test_study import make_set


def test_confident_errors_are_counted():
    share = count_confident_errors(
        np.array([0.95, 0.99, 0.9, 0.2]), np.array([True, False, False, True])
    )
    assert (share.count, share.wrong, share.share) == (2, 1, 0.5)
    assert share.low < 0.5 < share.high
    assert count_confident_errors(np.array([0.5]), np.array([True])).count == 0


@pytest.mark.parametrize(
    ("brier", "ece", "expected"),
    [
        ((-0.1, 0.01), (-0.1, 0.2), "better"),
        ((0.1, 0.01), (0.1, 0.01), "worse"),
        ((0.1, 0.01), (-0.1, 0.01), "mixed"),
        ((-0.1, 0.3), (0.1, 0.3), "same"),
        ((-0.1, float("nan")), (0.1, 0.3), "same"),
    ],
)
def test_the_outcome_follows_the_tests(brier, ece, expected):
    changes = {
        name: Result("x", "a", name, value, 0, p=p, p_holm=p)
        for name, (value, p) in (("brier", brier), ("ece", ece))
    }
    assert (
        determine_outcome(dataclasses.replace(make_set(), results=BeforeAfter({}, {}, changes)))
        == expected
    )


def test_too_few_samples_are_called_too_few():
    few = summarise_set(make_set(n=60, p=0.001))
    assert few.outcome == "few" and "collect more" in few.sentences[-1]
    assert summarise_all([few]) == "Too few samples to tell on a."


def test_the_summary_names_what_helped_and_what_did_not():
    helped, same = summarise_set(make_set(p=0.01)), summarise_set(make_set(name="b", p=0.5))
    text = summarise_all([helped, same])
    assert text.startswith("Calibration helped on a; no detectable difference on b.")
    assert "on average too low by" in text
    assert summarise_all([helped, dataclasses.replace(helped, name="c")]).startswith(
        "Calibration helped on both test sets."
    )


def test_summaries_hold_plain_numbers():
    one = make_set()
    words = summarise_set(one)
    sure = one.before > 0.9
    share = 100 * (sure & ~one.correct).sum() / sure.sum()
    assert words.headline.startswith(
        f"{share:.1f}\N{NO-BREAK SPACE}% of predictions above 0.9 are wrong"
    )
    assert words.headline.endswith("none (there are no such predictions).")  # 0.9 * before


def test_the_errors_there_should_be_stand_beside_those_there_are():
    confidence, correct = np.array([0.92, 0.98, 0.5]), np.array([False, True, False])
    share = count_confident_errors(confidence, correct)
    assert (share.wrong, share.expected) == (1, pytest.approx(0.1))
    one = dataclasses.replace(make_set(), correct_before=np.zeros(400, dtype=bool))
    words = summarise_set(one)
    assert words.before.wrong == words.before.count > 0  # of the classifier's own classes
