"""Numbers that must be fractions: each refusal says what the number would mean in per cent."""

import re

import jaxtyping
import numpy as np
import pytest
from sklearn.svm import LinearSVC

import rightly
from rightly import Decision, metrics
from rightly.cli import main
from rightly.evaluation.selection import select_method
from rightly.sklearn import CalibratedEstimator
from tests.conftest import make

PAIR = np.array([0.9, 0.8, 0.6]), np.array([True, True, False])


@pytest.fixture(autouse=True)
def untyped(monkeypatch):
    """Users run without the type checker of these tests, which would refuse some of these first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def data():
    return make(n=60)


def fit(data, **arguments):
    return rightly.fit(*data, "temperature_scaling", **arguments)


CALLS = {
    "fit threshold": lambda data, x: fit(data, threshold=x),
    "fit accuracy": lambda data, x: fit(data, accuracy=x),
    "fit confidence_level": lambda data, x: fit(data, accuracy=0.9, confidence_level=x),
    "fit holdout": lambda data, x: fit(data, accuracy=0.9, holdout=x),
    "fit coverage": lambda data, x: fit(data, coverage=x),
    "fit expected_shift": lambda data, x: rightly.fit(*data, "rightly", expected_shift=x),
    "calibrator expected_shift": lambda data, x: rightly.calibrator("rightly", expected_shift=x),
    "select_method expected_shift": lambda data, x: select_method(*data, expected_shift=x),
    "prediction_sets coverage": lambda data, x: fit(data, coverage=0.8).prediction_sets(
        data[0], coverage=x
    ),
    "decide threshold": lambda data, x: fit(data).decide(*data, threshold=x),
    "decide accuracy": lambda data, x: fit(data).decide(*data, accuracy=x),
    "decide coverage": lambda data, x: fit(data).decide(*data, coverage=x),
    "expected_accuracy confidence_level": lambda data, x: fit(data).expected_accuracy(data[0], x),
    "at threshold": lambda data, x: Decision.at(x, *PAIR),
    "guarantee accuracy": lambda data, x: Decision.guarantee(*PAIR, accuracy=x),
    "guarantee confidence_level": lambda data, x: Decision.guarantee(
        *PAIR, accuracy=0.9, confidence_level=x
    ),
    "examine expected_accuracy": lambda data, x: rightly.examine(data, expected_accuracy=x),
    "coverage_at_risk risk": lambda data, x: metrics.coverage_at_risk(*PAIR, risk=x),
    "risk_at_coverage coverage": lambda data, x: metrics.risk_at_coverage(*PAIR, coverage=x),
    "CalibratedEstimator calibration_fraction": lambda data, x: CalibratedEstimator(
        LinearSVC(), calibration_fraction=x
    ).fit(np.eye(4), np.arange(4) % 2),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_percentage_is_refused_with_both_readings(data, call):
    name = call.split()[1]
    for value, share in ((95, "0.95"), (1.5, "0.015")):
        refusal = rf"{name} must be a fraction in [(\[]0, 1[)\]], got {value}: for {value} % pass "
        with pytest.raises(ValueError, match=refusal + re.escape(share) + "$"):
            CALLS[call](data, value)
    for value in (-0.1, 100, float("nan"), "0.9", True):
        refusal = rf"{name} must be a fraction in .0, 1., got {value!r}: pass for instance 0.95"
        with pytest.raises(ValueError, match=refusal):
            CALLS[call](data, value)


@pytest.mark.parametrize("option", ["--threshold", "--accuracy", "--coverage", "--holdout"])
def test_a_percentage_is_refused_on_the_command_line(data, tmp_path, capsys, option):
    rightly.save(tmp_path / "cal.npz", *data)
    arguments = ["--method", "ts", option, "95", "--out", str(tmp_path / "c.safetensors")]
    assert main(["fit", str(tmp_path / "cal.npz"), *arguments]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"{option[2:]} must be a fraction in" in printed and "for 95 % pass 0.95" in printed
