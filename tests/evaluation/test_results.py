"""What results are worth beside a reference and over classifiers."""

import math

import numpy as np
import pytest

import rightly
from rightly.evaluation.results import (
    Result,
    mean_ranks,
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


def row_of(name, value, dataset="a", metric="ece", seed=0):
    return Result(name, dataset, metric, value, seed)


def test_ranks_over_classifiers_are_the_worked_example():
    first = [row_of("x", 0.1), row_of("y", 0.2), row_of("z", 0.2)]
    first += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.95), ("z", 0.8))]
    second = [row_of("x", 0.3), row_of("y", 0.1), row_of("z", 0.2), row_of("w", 0.0)]
    second += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.9), ("z", 0.9))]
    ranks = {one.calibrator: one for one in mean_ranks({"one": first, "two": second})}
    assert set(ranks) == {"x", "y", "z"}
    assert ranks["x"].mean_rank == pytest.approx((1 + 2 + 3 + 2) / 4)
    assert ranks["y"].mean_rank == pytest.approx((2.5 + 1 + 1 + 2) / 4)
    assert ranks["z"].rank == pytest.approx({"ece": (2.5 + 2) / 2, "auroc": (3 + 2) / 2})
    assert ranks["x"].mean == pytest.approx({"ece": 0.2, "auroc": 0.9})
    assert ranks["x"].spread["ece"] == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert next(iter(ranks)) == "y"


def test_seeds_are_averaged_and_one_classifier_has_no_spread():
    rows = [
        row_of("x", 0.1),
        row_of("x", 0.3, seed=1),
        row_of("y", 0.25),
        row_of("y", 0.25, seed=1),
    ]
    best, other = mean_ranks({"one": rows})
    assert (best.calibrator, other.calibrator) == ("x", "y")
    assert best.mean["ece"] == pytest.approx(0.2) and math.isnan(best.spread["ece"])


def test_a_value_that_does_not_exist_is_not_ranked():
    rows = [row_of("x", math.nan), row_of("y", 0.1), row_of("x", 0.2, "b"), row_of("y", 0.3, "b")]
    ranks = {one.calibrator: one for one in mean_ranks({"one": rows})}
    assert (ranks["x"].mean_rank, ranks["y"].mean_rank) == (1, 2)


def test_classifiers_with_nothing_in_common_are_refused():
    with pytest.raises(ValueError, match="no calibrator was measured"):
        mean_ranks({"one": [row_of("x", 0.1)], "two": [row_of("y", 0.1)]})
    with pytest.raises(ValueError, match="at least one classifier"):
        mean_ranks({})
