"""What results are worth beside a reference and over classifiers."""

import math

import numpy as np
import pytest

import rightly
from rightly.evaluation.results import (
    resolve_reference,
    resolve_resamples,
)
from tests.conftest import make

METHODS = ["uncalibrated", "temperature_scaling", "ca_views_released", "balanced_temperature"]


def compare(methods, metrics=("ece", "brier", "ks", "auroc"), **options):
    tests = {"a": make(seed=1)}
    return rightly.compare(make(), tests, methods=methods, metrics=metrics, **options).results


@pytest.fixture(scope="module")
def results():
    return compare(METHODS, intervals=True, resamples=200)


def test_intervals_do_not_change_values(results):
    assert [row[:5] for row in results] == [row[:5] for row in compare(METHODS)]
    assert all(row.low <= row.value <= row.high for row in results)


def test_the_reference_is_not_tested_against_itself(results):
    for row in results:
        assert math.isnan(row.p) == (row.calibrator == "temperature_scaling")
        assert math.isnan(row.floor) == (row.metric != "ece")
        if not math.isnan(row.p):
            assert row.p <= row.p_holm <= 1


def test_seeds_share_the_interval_of_their_mean():
    rows = compare(METHODS, ["brier"], repeats=2, intervals=True, resamples=200)
    released = [row for row in rows if row.calibrator == "ca_views_released"]
    assert released[0].value != released[1].value
    assert released[0][5:9] == released[1][5:9]
    middle = np.mean([row.value for row in released])
    assert released[0].low < middle < released[0].high


def test_a_diagnostic_is_never_tested():
    rows = compare(METHODS[:2], ["narrowly_wrong"], intervals=True, resamples=100)
    assert all(math.isnan(row.p) and row.low <= row.high for row in rows)


def test_the_default_reference_and_resamples_fit_the_methods():
    assert resolve_reference(None, METHODS) == "temperature_scaling"
    assert resolve_reference(None, ["spline", "x"]) == "spline"
    assert resolve_reference("x", ["spline", "x"]) == "x"
    assert resolve_resamples(None, 4) == 1000 and resolve_resamples(None, 40) == 40 * 39
    assert resolve_resamples(50, 2) == 50


def test_a_bootstrap_that_cannot_tell_methods_apart_is_refused():
    with pytest.raises(ValueError, match="resamples must be at least 120"):
        resolve_resamples(100, 4)
    with pytest.raises(ValueError, match="reference must be one of the methods compared"):
        resolve_reference("spline", METHODS)
