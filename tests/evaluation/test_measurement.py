"""From calibrators and test sets to numbers."""

import math

import numpy as np
import pytest

import rightly
from rightly.calibrators import CALIBRATORS
from rightly.calibrators.base import Calibrator
from rightly.evaluation.compare import compare
from rightly.evaluation.measurement import (
    compare_outcomes,
    compute_outcomes,
    fit_method,
    measure,
)
from rightly.metrics import METRICS
from tests.conftest import make


def test_measures_are_the_metrics_of_confidence_and_probabilities(sample, other):
    fitted = rightly.calibrator("temperature_scaling").fit(*sample)
    values = measure(fitted, *other)
    correct = other[0].correct(other[1])
    ece = METRICS["ece"].measure(fitted.confidence(other[0]), correct)
    assert values["ece"] == pytest.approx(ece, abs=1e-12)
    expected = METRICS["nll"].measure(fitted.probabilities(other[0]), other[1])
    assert values["nll"] == expected
    assert list(values) == list(METRICS)
    assert measure(fitted, *other, ["brier"]) == {"brier": values["brier"]}
    assert measure(fitted, *other, "brier") == {"brier": values["brier"]}
    assert measure(fitted, *other, "all") == values


class Contrarian(Calibrator):
    """Predicts the classifier's second choice."""

    keeps_class = False

    def learn(self, predictions, labels):
        self.store(nothing=predictions.logits.new_zeros(1))

    def compute_classes(self, predictions):
        return predictions.logits.topk(2).indices[:, 1]

    def compute_confidence(self, predictions):
        return predictions.confidence


def test_correctness_is_that_of_the_calibrators_own_classes(sample):
    predictions, labels = sample
    fitted = Contrarian().fit(predictions, labels)
    outcomes = compute_outcomes(fitted, predictions, labels, ["ece"])
    second = predictions.logits.topk(2).indices[:, 1]
    np.testing.assert_array_equal(outcomes.correct, (second == labels).numpy())
    assert outcomes.probabilities is None


def test_a_comparison_has_a_row_for_everything(sample, other):
    tests = {"a": other, "b": make(seed=2)}
    methods = ["uncalibrated", "ca_only"]
    shown = compare(sample, tests, methods=methods, metrics=["ece", "auroc"], repeats=2)
    results, calibrators = shown.results, shown.calibrators
    keys = {(row.calibrator, row.dataset, row.metric, row.seed) for row in results}
    assert len(results) == len(keys) == 2 * 2 * 2 * 2
    assert all(math.isfinite(row.value) for row in results)
    row = next(row for row in results if row[:3] == ("ca_only", "b", "ece") and row.seed == 0)
    assert row.value == measure(calibrators["ca_only"], *tests["b"], ["ece"])["ece"]


def test_seeds_differ_only_where_something_is_drawn(sample, other):
    steps = []
    results = compare(
        sample,
        {"a": other},
        methods=["spline", "ca_views_released"],
        metrics=["brier"],
        repeats=2,
        progress=lambda *step: steps.append(step),
    )
    spline, released = (
        [row.value for row in results if row.calibrator == name]
        for name in ("spline", "ca_views_released")
    )
    assert spline[0] == spline[1]
    assert released[0] != released[1]
    assert steps == [("spline", 0, 3), ("ca_views_released", 1, 3), ("ca_views_released", 2, 3)]
    for seed in (0, 1):
        fitted = fit_method("ca_views_released", *sample, seed=seed)
        assert released[seed] == measure(fitted, *other, ["brier"])["brier"]


def test_aliases_are_compared_by_their_canonical_name(sample, other):
    shown = compare(sample, {"a": other}, methods=["ts", "temperature_scaling"])
    assert shown.methods == ["temperature_scaling"] == list(shown.calibrators)
    assert len(shown) == 4


def test_calibrators_that_are_fitted_already_are_measured_beside(sample, other):
    fitted = rightly.calibrator("spline").fit(*other)
    methods = {"spline": "spline", "x": fitted}
    options = {"metrics": ["brier"], "intervals": True, "resamples": 50}
    shown = compare(sample, {"a": other}, methods=methods, **options)
    values = {row.calibrator: row.value for row in shown}
    assert values["x"] == measure(fitted, *other, ["brier"])["brier"] != values["spline"]
    assert shown.calibrators["x"] is fitted and all(row.low < row.high for row in shown)


def test_views_are_chosen_as_the_calibrator_was_fitted(sample, other):
    cal = (sample[0].with_views(["view2"]), sample[1])
    shown = compare(cal, {"a": other}, methods=["ca_views"], metrics=["brier"])
    assert shown.calibrators["ca_views"].view_names == ("view2",)
    assert math.isfinite(shown[0].value)


def test_bad_requests_are_refused(sample, other):
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        compare(sample, {"a": other}, methods=["spline"], repeats=0)
    with pytest.raises(ValueError, match="metric 'ecee' is not known: did you mean ece"):
        compare(sample, {"a": other}, methods=["spline"], metrics=["ecee"])
    with pytest.raises(ValueError, match="methods 'nothing' is not known"):
        compare(sample, {"a": other}, methods=["nothing"])
    with pytest.raises(ValueError, match="reference must come with intervals=True"):
        compare(sample, {"a": other}, methods=["spline", "ts"], reference="ts")
    with pytest.raises(ValueError, match="reference must be one of the methods compared, spline"):
        compare(sample, {"a": other}, methods=["spline"], reference="ts", intervals=True)


def test_before_and_after_differ_by_the_change(sample, other):
    fitted = CALIBRATORS["temperature_scaling"].build().fit(*sample)
    pair = [compute_outcomes(one, *other, list(METRICS)) for one in (None, fitted)]
    plain = compare_outcomes("x", "a", *pair, list(METRICS))
    assert list(plain.before) == list(plain.after) == list(METRICS)
    assert plain.before["brier"].calibrator == "uncalibrated"
    own = METRICS["brier"].measure(other[0].confidence, other[0].correct(other[1]))
    assert plain.before["brier"].value == own
    for name, change in plain.change.items():
        expected = plain.after[name].value - plain.before[name].value
        assert change.value == pytest.approx(expected, nan_ok=True)
        assert math.isnan(change.low) and math.isnan(change.p)
    tested = compare_outcomes("x", "a", *pair, ["brier"], 200)
    change = tested.change["brier"]
    assert change.low < change.value < change.high
    assert change.p == change.p_holm == tested.after["brier"].p
    # An interval without 0 and a p value below 5 % say the same.
    assert (change.low <= 0 <= change.high) == (change.p > 0.05)


def test_a_note_says_where_accuracy_changed_and_by_how_much(sample, other):
    predictions, labels = other
    fitted = CALIBRATORS["vector_scaling"].build().fit(*sample)
    right = float((fitted.classes(predictions) == labels).double().mean())
    before = float(predictions.correct(labels).double().mean())
    assert right != before
    tests = {"mine": other}
    notes = compare(sample, tests, methods=["ts", "vector_scaling"], metrics=["brier"]).notes
    assert notes == [
        f"vector_scaling predicts other classes: accuracy {100 * before:.2f} to "
        f"{100 * right:.2f} % on mine."
    ]
