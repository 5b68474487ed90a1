"""A fitted calibrator with decision and record has the calls of the calibrator."""

import jaxtyping
import pytest
import torch

import rightly
from rightly import Decision
from rightly.calibrators import FittedCalibrator, NotFittedError, as_fitted
from tests.conftest import make

SAME = (
    "method title arguments needs keeps_class is_pointwise class_count class_names view_names "
    "feature_count"
)


@pytest.fixture
def calibrator():
    return rightly.calibrator("ca_views", seed=2).fit(*make())


def test_its_calls_are_those_of_the_calibrator(calibrator, other):
    fitted = FittedCalibrator(calibrator)
    for name in ("classes", "confidence", "temperature", "probabilities"):
        outputs = (getattr(one, name)(other[0]) for one in (fitted, calibrator))
        assert torch.equal(*outputs)
    for name in SAME.split():
        assert getattr(fitted, name) == getattr(calibrator, name)


def test_views_are_selected_by_name(calibrator, other):
    turned = other[0].with_views(["view2", "view1", "view0"])
    again = FittedCalibrator(calibrator).select_views(turned)
    assert again.view_names == ("view0", "view1", "view2")
    assert torch.equal(again.view_logits, other[0].view_logits)


def test_a_confidence_at_the_threshold_is_accepted(calibrator, other):
    confidence = calibrator.confidence(other[0])
    fitted = FittedCalibrator(calibrator, Decision(float(confidence.median())))
    assert torch.equal(fitted.accept(other[0]), confidence >= confidence.median())
    assert fitted.accept(other[0])[confidence == confidence.median()].all()
    with pytest.raises(ValueError, match="no threshold to accept by"):
        FittedCalibrator(calibrator).accept(other[0])


def test_its_repr_names_classifier_and_threshold(calibrator):
    start = "<ca_views, fitted on 300 samples of 10 classes with 3 views"
    assert repr(FittedCalibrator(calibrator)) == start + ">"
    record = {"classifier": {"name": "timm:resnet18"}}
    both = repr(FittedCalibrator(calibrator, Decision(0.81234), record))
    assert both == start + ", classifier timm:resnet18, accepts from 0.8123>"


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError, match="spline is not fitted"):
        FittedCalibrator(rightly.calibrator("spline"))


def test_a_number_is_no_decision(calibrator, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match=r"decision must be a Decision or None, got float: use"):
        FittedCalibrator(calibrator, 0.8)


def test_any_calibrator_becomes_a_fitted_one(calibrator):
    fitted = as_fitted(calibrator)
    assert fitted.calibrator is calibrator and fitted.threshold is None and fitted.record == {}
    assert as_fitted(fitted) is fitted


def test_a_saved_calibrator_is_the_same_file_without_threshold(calibrator, tmp_path):
    calibrator.save(tmp_path / "a.safetensors")
    FittedCalibrator(calibrator).save(tmp_path / "b.safetensors")
    one, two = (rightly.load_calibrator(tmp_path / f"{name}.safetensors") for name in "ab")
    assert one.threshold is None and two.threshold is None and one.record == two.record == {}
    assert one.arguments == {"seed": 2}
