"""State of a calibrator beside what it learned: decision, prediction sets, shift, record."""

import copy

import pytest
import torch

import rightly
from rightly import Decision
from rightly.calibrators import NotFittedError, check_calibrator
from tests.conftest import make


@pytest.fixture
def calibrator():
    return rightly.calibrator("ca_views", seed=2).fit(*make())


def test_a_fit_has_none_of_it_and_forgets_it(calibrator):
    empty = (None, None, None, {})
    assert (calibrator.decision, calibrator.sets, calibrator.shift, calibrator.record) == empty
    calibrator.decide(*make(n=200, seed=3), threshold=0.5, coverage=0.9).learn_shift(*make())
    calibrator.record = {"classifier": None}
    calibrator.fit(*make())
    assert (calibrator.decision, calibrator.sets, calibrator.shift, calibrator.record) == empty


def test_views_are_selected_by_name(calibrator, other):
    turned = other[0].with_views(["view2", "view1", "view0"])
    again = calibrator.select_views(turned)
    assert again.view_names == ("view0", "view1", "view2")
    assert torch.equal(again.view_logits, other[0].view_logits)


def test_a_confidence_at_the_threshold_is_accepted(calibrator, other):
    with pytest.raises(ValueError, match="no threshold to accept by"):
        calibrator.accept(other[0])
    confidence = calibrator.confidence(other[0])
    calibrator.decision = Decision(float(confidence.median()))
    assert torch.equal(calibrator.accept(other[0]), confidence >= confidence.median())
    assert calibrator.accept(other[0])[confidence == confidence.median()].all()


def test_its_repr_names_classifier_and_threshold(calibrator):
    start = "<ca_views, fitted on 300 samples of 10 classes with 3 views"
    assert repr(calibrator) == start + ">"
    calibrator.record = {"classifier": {"name": "timm:resnet18"}}
    calibrator.decision = Decision(0.81234)
    assert repr(calibrator) == start + ", classifier timm:resnet18, accepts from 0.8123>"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("decision", 0.8, "decision must be a Decision or None, got float: use Decision.at"),
        ("sets", 0.9, "sets must be ConformalSets or None, got float: use decide"),
        ("shift", torch.nn.Linear(1, 1), "shift must be a ShiftAdaptation or None, got Linear"),
        ("record", None, "record must be a table of plain values, got NoneType"),
    ],
)
def test_what_is_set_is_checked(calibrator, name, value, words):
    with pytest.raises(TypeError, match=words):
        setattr(calibrator, name, value)


def test_only_fitted_calibrators_pass_for_one(calibrator):
    assert check_calibrator(calibrator) is calibrator
    with pytest.raises(NotFittedError, match="spline is not fitted"):
        check_calibrator(rightly.calibrator("spline"))
    with pytest.raises(TypeError, match="calibrator must be a fitted rightly calibrator, got str"):
        check_calibrator("spline")


@pytest.mark.parametrize("name", ["temperature_scaling", "correctness_logistic", "budget"])
def test_all_state_is_saved_and_adapted_copies_leave_it_alone(name, other, tmp_path):
    options = {"budget": 1.5} if name == "budget" else {}
    fitted = rightly.calibrator("rightly" if options else name, **options).fit(*make())
    held_out = make(n=400, seed=7)
    assert fitted.decide(*held_out, accuracy=0.5, coverage=0.8).learn_shift(*make()) is fitted
    fitted.record = {"classifier": {"name": "one"}}
    before = copy.deepcopy(fitted)
    adapted = fitted.adapt(other[0])
    assert adapted.decision.void == "adapted data" and adapted.sets is not None
    assert adapted.record["adapted"]["samples"] == 300
    with pytest.warns(UserWarning, match="drops its decision and prediction sets"):
        labelled = fitted.adapt(*other)
    assert labelled.decision is labelled.sets is labelled.shift is None
    fitted.save(tmp_path / "a.safetensors")
    for one in (fitted, rightly.load_calibrator(tmp_path / "a.safetensors")):
        assert type(one) is type(fitted) and one.decision == before.decision
        assert one.record == before.record
        assert torch.equal(one.prediction_sets(other[0]), before.prediction_sets(other[0]))
        assert torch.equal(one.accept(other[0]), before.accept(other[0]))
        adapted_again = one.adapt(other[0])
        assert torch.equal(adapted_again.confidence(other[0]), adapted.confidence(other[0]))
    for part in fitted.children():
        assert getattr(part, "decision", None) is getattr(part, "sets", None) is None


def test_what_to_decide_by_must_be_said(calibrator):
    with pytest.raises(ValueError, match="threshold=, accuracy=, costs= or coverage="):
        calibrator.decide(*make(seed=3))
    with pytest.raises(ValueError, match="threshold and accuracy exclude each other"):
        calibrator.decide(*make(seed=3), threshold=0.5, accuracy=0.9)
    with pytest.raises(NotFittedError, match="call fit"):
        rightly.calibrator("ts").decide(*make(), threshold=0.5)
