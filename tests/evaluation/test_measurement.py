import io
import math
import re

import numpy as np
import pytest
from rich.console import Console

import rightly
from rightly import Predictions
from rightly.evaluation.measurement import compare, is_random, measure, missing, runnable
from rightly.reporting.tables import comparison, print_comparison
from tests.conftest import make


def test_measures_are_the_metrics_of_confidence_and_probabilities(sample, other):
    fitted = rightly.calibrator("temperature_scaling").fit(*sample)
    values = measure(fitted, *other)
    correct = other[0].correct(other[1])
    assert values["ece"] == rightly.metrics.ece(fitted.confidence(other[0]), correct)
    expected = rightly.metrics.nll(fitted.probabilities(other[0]), other[1])
    assert values["nll"] == expected
    assert list(values) == list(rightly.metrics.METRICS)


def test_a_comparison_has_a_row_for_everything(sample, other):
    methods = ["uncalibrated", "ca_only"]
    rows = compare(*sample, {"a": other, "b": make(seed=2)}, methods, ["ece", "auroc"], seeds=2)
    keys = {(row.calibrator, row.dataset, row.metric, row.seed) for row in rows}
    assert len(rows) == len(keys) == 2 * 2 * 2 * 2
    values = {row: row.value for row in rows}
    assert all(math.isfinite(value) for value in values.values())


def test_seeds_differ_only_where_something_is_drawn(sample, other):
    rows = compare(*sample, {"a": other}, ["spline", "ca_views_released"], ["brier"], seeds=2)
    spline, released = (
        [row.value for row in rows if row.calibrator == name]
        for name in ("spline", "ca_views_released")
    )
    assert spline[0] == spline[1]
    assert released[0] != released[1]
    assert is_random("ca_views") and not is_random("multi_isotonic")


def test_methods_run_where_their_inputs_are(sample):
    bare = Predictions(sample[0].logits)
    names = runnable(bare, {})
    assert "temperature_scaling" in names and "ca_only" in names
    assert not {"ca_views", "proximity"} & set(names)
    assert missing("ca_views", sample[0], {"t": (bare, sample[1])}) == ("view_logits",)


def test_bad_requests_are_refused(sample, other):
    with pytest.raises(ValueError, match="seeds must be at least 1"):
        compare(*sample, {"a": other}, seeds=0)
    with pytest.raises(ValueError, match="metric must be one of ece"):
        compare(*sample, {"a": other}, metrics=["ecee"])
    with pytest.raises(ValueError, match="method must be one of"):
        compare(*sample, {"a": other}, methods=["nothing"])


@pytest.fixture
def rows(sample, other):
    return compare(*sample, {"first set": other, "b": make(seed=2)}, ["uncalibrated", "spline"])


def rendered(width, rows):
    console = Console(width=width, force_terminal=True, record=True, file=io.StringIO())
    print_comparison(rows, console)
    return console.export_text(styles=True)


def test_the_best_of_each_column_is_bold(rows):
    text = rendered(200, rows)
    for dataset in ("first set", "b"):
        values = {
            r.calibrator: r.value for r in rows if (r.dataset, r.metric) == (dataset, "brier")
        }
        best = f"{100 * min(values.values()):.2f}"
        assert re.search(rf"\x1b\[1m *{best}\x1b", text)


def test_a_narrow_terminal_gets_one_table_a_test_set_and_loses_no_digit(rows):
    text = rendered(70, rows)
    assert "…" not in text
    for row in rows:
        assert f"{100 * row.value:.2f}" in text


def test_values_that_do_not_exist_are_said_to_be_missing(sample):
    predictions, labels = sample
    right = predictions.correct(labels)
    rows = compare(*sample, {"all right": (predictions[right], labels[right])}, ["uncalibrated"])
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(comparison(rows))
    assert "n/a" in console.export_text()
    assert np.isnan([row.value for row in rows if row.metric == "auroc"]).all()
