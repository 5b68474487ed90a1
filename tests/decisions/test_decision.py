"""Decisions: what they measure, say, and store."""

import json
from dataclasses import replace

import jaxtyping
import numpy as np
import pytest

from rightly import Decision
from rightly.decisions.decision import ADAPTED

CONFIDENCE = np.linspace(0.999, 0.2, 400)
CORRECT = np.arange(400) < 300

MADE = {
    "manual": Decision.at(0.7, CONFIDENCE, CORRECT, measured_on="held-out samples"),
    "guaranteed": Decision.guarantee(CONFIDENCE, CORRECT, accuracy=0.95, confidence_level=0.9),
    "impossible": Decision.guarantee([0.9, 0.8], [True, True], accuracy=0.95),
    "least_cost": Decision.least_cost(CONFIDENCE, CORRECT, error=10, review=1, resamples=20),
    "review all": Decision.least_cost([0.9], [False], error=10, review=1, resamples=20),
}
MADE["approximate"] = replace(MADE["guaranteed"], kind="approximate", violation_rate=0.03)
MADE["void"] = MADE["guaranteed"].voided(ADAPTED)
MADE["unmeasured"] = Decision(0.5)


def test_a_manual_threshold_is_measured_on_the_samples():
    decision = Decision.at(0.5, [0.2, 0.5, 0.5, 0.9], np.array([False, True, False, True]))
    assert (decision.kind, decision.n, decision.accepted, decision.coverage) == (
        "manual",
        4,
        3,
        0.75,
    )
    assert decision.accuracy == pytest.approx(2 / 3)
    low, high = decision.accuracy_interval
    assert 0 < low < 2 / 3 < high < 1
    assert not decision.is_guaranteed


def test_nothing_accepted_has_no_accuracy():
    decision = Decision.at(0.5, [0.2], np.array([True]))
    assert decision.accepted == 0 and decision.coverage == 0
    assert decision.accuracy is None and decision.accuracy_interval is None


@pytest.mark.parametrize("share", [1.5, -0.1, float("nan"), True, "0.9"])
def test_thresholds_outside_0_to_1_are_refused_by_name(share, monkeypatch):
    # Users run without the type checker of these tests, which would refuse some of these first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="threshold must be a fraction in .0, 1., got"):
        Decision.at(share, [0.5], np.array([True]))


@pytest.mark.parametrize("name", MADE)
def test_a_decision_comes_back_from_json(name):
    decision = MADE[name]
    assert (
        Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False))) == decision
    )


LINES = {
    "manual": "of 1,000 samples about 375 accepted",
    "guaranteed": "at most 5 % of them wrong (guaranteed, confidence level 90 %)",
    "impossible": "no threshold: not with these 2 samples; about 59 would do",
    "least_cost": "accepted, at a cost of",
    "review all": "no threshold: reviewing all costs least at these costs",
    "approximate": "about 5 % of them wrong or fewer (approximate: violation rate 3 % in simulated",
    "void": "accepted on the calibration data; guarantee void: adapted data",
    "unmeasured": "accepts confidence from 0.5000",
}


@pytest.mark.parametrize("name", MADE)
def test_a_decision_is_described_in_one_line(name):
    assert LINES[name] in MADE[name].describe()


def test_a_void_guarantee_keeps_its_threshold_and_is_none():
    decision = MADE["guaranteed"]
    assert decision.is_guaranteed and not MADE["void"].is_guaranteed
    assert MADE["void"].threshold == decision.threshold
    assert not MADE["impossible"].is_guaranteed
    assert "guarantee" not in replace(MADE["least_cost"], void=ADAPTED).describe()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 1.5}, "decision.threshold must be a number from 0 to 1, got 1.5"),
        ({"kind": "sure"}, "decision.kind must be one of manual, guaranteed"),
        ({"kind": []}, "decision.kind must be one of"),
        ({"kind": None}, "decision must have kind"),
        ({"threshold": None, "reason": None}, "decision must have reason"),
        ({"n": -1}, "decision.n must be a number of samples"),
        ({"costs": {"error": 1}}, "decision.costs must be error, review"),
        ({"accuracy_interval": [0.9, 0.8]}, "accuracy_interval must be two numbers"),
        ({"accuracy_interval": None}, "must have accuracy_interval where it has an accuracy"),
        ({"max_error": None}, "must have max_error where its kind is guaranteed"),
        ({"error_bound": 0.5}, "error_bound must be at most max_error, 0.05"),
        ({"certainty": 0.9}, "decision must have entries of .*, got certainty"),
    ],
)
def test_forged_values_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        Decision.from_dict(MADE["guaranteed"].to_dict() | changes)


def test_no_table_is_refused():
    with pytest.raises(ValueError, match="decision must be a table, got 3"):
        Decision.from_dict(3)
