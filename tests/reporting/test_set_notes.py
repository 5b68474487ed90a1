"""Prediction sets in what `evaluate` measures and says."""

import copy
import json

import pytest
import torch

import rightly
from rightly.decisions import exact_interval
from rightly.decisions.decision import describe_set_guarantee
from tests.conftest import make


@pytest.fixture(scope="module")
def fitted():
    return rightly.fit(*make(n=400), "temperature_scaling").decide(
        *make(n=600, seed=1), coverage=0.8
    )


def test_size_and_coverage_are_measured_with_an_interval(fitted, other, tmp_path):
    evaluation = rightly.evaluate(fitted, {"mine": other}, metrics=["ece"])
    sets, labels = fitted.prediction_sets(other[0]), other[1]
    covered = int(sets[torch.arange(len(labels)), labels].sum())
    quality = evaluation.set_quality["mine"]
    assert quality.coverage == covered / 300 and 0.7 < quality.coverage < 0.9
    assert (quality.coverage_low, quality.coverage_high) == exact_interval(covered, 300)
    assert quality.mean_size == pytest.approx(float(sets.sum(1).double().mean()))
    assert quality.single == pytest.approx(float((sets.sum(1) == 1).double().mean()))
    evaluation.to_json(tmp_path / "a.json")
    stored = json.loads((tmp_path / "a.json").read_text())["prediction_sets"]
    assert stored["nominal"]["coverage"] == 0.8 and stored["nominal"]["samples"] == 600
    assert stored["tests"]["mine"]["coverage"] == quality.coverage
    low, high = stored["nominal"]["coverage_interval"]
    shown = " ".join(evaluation.lay_out().notes)
    assert f"{100 * low:.1f} % to {100 * high:.1f} % with probability 0.95" in shown
    assert f"hold the true class of {100 * quality.coverage:.1f} %" in shown


def test_coverage_is_measured_by_class_the_least_covered_first(fitted, tmp_path):
    """Sets of one threshold cover a class less that is harder."""
    test, labels = make(n=2000, seed=5)
    names = [f"kind {k}" for k in range(10)]
    logits = test.logits.clone()
    logits[labels == 3, 3] -= 2
    named = rightly.Predictions(logits, class_names=names)
    evaluation = rightly.evaluate(fitted, {"mine": (named, labels)}, metrics=["ece"])
    classes = evaluation.set_quality["mine"].classes
    sets = fitted.prediction_sets(named)
    assert sorted(one.number for one in classes) == list(range(10))
    for one in classes:
        held = sets[labels == one.number, one.number]
        assert (one.samples, one.coverage) == (len(held), float(held.double().mean()))
        assert (one.low, one.high) == exact_interval(int(held.sum()), len(held))
    assert [one.high for one in classes] == sorted(one.high for one in classes)
    worst = classes[0]
    assert worst.number == 3 and worst.high < 0.8
    shown = " ".join(evaluation.lay_out().notes)
    assert f"Least covered there: {worst.name} {100 * worst.coverage:.1f} % (" in shown
    assert "fit with class_conditional=True" in shown
    evaluation.to_json(tmp_path / "a.json")
    stored = json.loads((tmp_path / "a.json").read_text())["prediction_sets"]["tests"]["mine"]
    assert stored["classes"][0]["name"] == worst.name and len(stored["classes"]) == 10


def test_coverage_and_size_can_be_required(fitted, other):
    gates = ["set_coverage.low>=0.5", "set_coverage<=0.6", "set_size<1"]
    tests, ece = {"mine": other}, {"metrics": ["ece"], "intervals": False}
    evaluation = rightly.evaluate(fitted, tests, require=gates, **ece)
    quality = evaluation.set_quality["mine"]
    assert evaluation.missed == [
        f"set_coverage on mine is {quality.coverage:.6g}, required <= 0.6",
        f"set_size on mine is {quality.mean_size:.6g}, required < 1",
    ]
    with pytest.raises(ValueError, match="prediction sets .* not adapted to measure set_coverage"):
        rightly.evaluate(fitted, tests, adapt=True, require=["set_coverage>=0.5"], **ece)


@pytest.mark.parametrize("adapt_first", [False, True])
def test_no_coverage_is_claimed_after_adapting(fitted, other, adapt_first):
    one = fitted.adapt(other[0]) if adapt_first else fitted
    evaluation = rightly.evaluate(one, {"mine": other}, metrics=["ece"], adapt=not adapt_first)
    assert evaluation.set_quality["mine"].coverage is None
    assert evaluation.set_quality["mine"].mean_size > 1
    shown = " ".join(evaluation.lay_out().notes)
    assert (
        "guarantee void: adapted data, no coverage is claimed" in shown
        and "hold the true class" not in shown
    )
    assert "classes on average" in shown


def test_classes_that_take_the_threshold_of_all_are_counted(fitted):
    predictions, labels = make(n=600, seed=1)
    kept = labels != 3
    by_class = copy.deepcopy(fitted).decide(
        predictions[kept], labels[kept], coverage=0.9, class_conditional=True
    )
    text = describe_set_guarantee(by_class.sets.describe(), 10)
    assert "in each of 9 classes (1 more had too few images and take the threshold of all)" in text


def test_calibrators_without_sets_say_nothing_of_them(other):
    plain = rightly.calibrator("temperature_scaling").fit(*make())
    evaluation = rightly.evaluate(plain, {"mine": other}, metrics=["ece"])
    assert evaluation.set_quality == {} and "rediction sets" not in str(evaluation.lay_out().notes)
