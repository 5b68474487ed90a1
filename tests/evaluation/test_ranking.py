"""Means over classifiers: of what all have, with intervals as wide as classifiers differ."""

import math

import numpy as np
import pytest

from rightly.evaluation.ranking import MEAN, build_grid
from rightly.evaluation.results import Result

RESAMPLED = (2000, 0)


def make_results(values, floor=0.02):
    """One classifier's results from {(method, dataset): ece}."""
    return [
        Result(method, dataset, "ece", value, 0, floor=floor, floor_high=2 * floor)
        for (method, dataset), value in values.items()
    ]


def test_means_spreads_and_ranks_are_over_classifiers():
    grid = build_grid(
        {
            "one": make_results({("a", "x"): 0.1, ("b", "x"): 0.2, ("a", "y"): 0.3, ("b", "y"): 0}),
            "two": make_results({("a", "x"): 0.3, ("b", "x"): 0.2, ("a", "y"): 0.1, ("b", "y"): 0}),
        }
    )
    rows = {row[:2]: row for row in grid.average(*RESAMPLED)}
    assert list(rows) == [(m, d) for d in ("x", "y", MEAN) for m in "ab"]
    assert rows["a", "x"].mean == pytest.approx(0.2) and rows["a", "x"].rank == 1.5
    assert math.isnan(rows["a", "x"].low)  # two classifiers tell nothing of others
    assert rows["a", "x"].spread == pytest.approx(0.2 / math.sqrt(2))
    assert rows["a", MEAN].mean == pytest.approx(0.2) and rows["b", MEAN].rank == 1
    assert rows["b", "y"].within_noise == 2 and rows["a", "x"].within_noise == 0
    assert rows["a", MEAN].floor == 0.02 and rows["b", MEAN].within_noise == 0


def test_intervals_are_those_of_a_mean_of_few():
    values = np.random.default_rng(0).normal(0.5, 0.1, 8)
    grid = build_grid({str(i): make_results({("a", "x"): value}) for i, value in enumerate(values)})
    row = grid.average(*RESAMPLED)[0]
    error = values.std(ddof=1) / math.sqrt(8)
    assert row.high - row.low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_what_a_classifier_lacks_is_averaged_for_none():
    full = {(m, d): 0.1 for m in "abc" for d in ("x", "y")}
    without_y = {key: value for key, value in full.items() if key[1] != "y"}
    without_c = {key: value for key, value in full.items() if key[0] != "c"}
    lacking = {"one": full, "two": without_y, "three": without_c}
    grid = build_grid({name: make_results(values) for name, values in lacking.items()})
    assert (grid.methods, grid.datasets) == (["a", "b"], ["x"])
    assert grid.missing == [
        "y is not averaged: two does not have it.",
        "c is left out: three does not have it.",
    ]
    only = {"one": {("a", "x"): 0.1}, "two": {("a", "y"): 0.1}}
    with pytest.raises(ValueError, match="there is none in common"):
        build_grid({name: make_results(values) for name, values in only.items()})
    only = {"one": {("a", "x"): 0.1}, "two": {("b", "x"): 0.1}}
    with pytest.raises(ValueError, match="methods must hold one that every classifier has"):
        build_grid({name: make_results(values) for name, values in only.items()})


def test_a_value_that_is_none_gives_no_mean_and_no_rank():
    results = {
        "one": make_results({("a", "x"): math.nan, ("b", "x"): 0.1}),
        "two": make_results({("a", "x"): 0.1, ("b", "x"): 0.2}),
    }
    a, b = build_grid(results).average(*RESAMPLED)
    assert math.isnan(a.mean) and math.isnan(a.low) and b.mean == pytest.approx(0.15)
    assert (a.rank, b.rank) == (1, 2)  # in the one classifier that has both


def test_a_method_without_a_value_on_a_test_set_is_refused():
    whole = {(m, d): 0.1 for m in "ab" for d in ("x", "y")}
    partial = {key: value for key, value in whole.items() if key != ("b", "y")}
    results = {"one": make_results(whole), "two": make_results(partial)}
    with pytest.raises(ValueError, match="directory must hold .* but two has no ece of b on y"):
        build_grid(results)
