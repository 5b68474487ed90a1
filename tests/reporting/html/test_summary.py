"""What a report says in words is what the arrays say."""

import dataclasses

import numpy as np
import pytest

from rightly.decisions import operating_point
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.reporting.html.summary import (
    THRESHOLDS,
    count_accepted,
    count_confident_errors,
    determine_outcome,
    summarise_all,
    summarise_classes,
    summarise_set,
)
from tests.reporting.html.test_study import make_set, make_study


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
    assert words.headline.startswith(f"{share:.0f} % of predictions above 0.9 are wrong")
    assert words.headline.endswith("none (there are no such predictions).")  # 0.9 * before


def test_the_slider_counts_what_a_threshold_accepts():
    one = make_set()
    counts = count_accepted(one.before, one.correct)
    for k in (0, 37, 50, 99, 100):
        point = operating_point(one.before, one.correct, float(THRESHOLDS[k]))
        assert counts.count[k] / 400 == pytest.approx(point.coverage)
        if counts.count[k]:
            assert counts.right[k] / counts.count[k] == pytest.approx(point.accuracy)


def test_class_lines_are_means_by_predicted_class():
    one = make_set()
    study = make_study(class_names=("ant", "bee", "cow"))
    lines = summarise_classes(study, one)
    of = one.predicted == 1
    assert [line.name for line in lines] == ["ant", "bee", "cow"]
    assert lines[1].count == of.sum()
    assert lines[1].accuracy == pytest.approx(one.correct[of].mean())
    assert lines[1].gap == pytest.approx(one.after[of].mean() - one.correct[of].mean())
    assert len(summarise_classes(study, one, most=2)) == 2
