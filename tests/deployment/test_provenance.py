"""A calibrator goes only with the classifier that it was fitted on."""

import warnings

import pytest

import rightly
from rightly import CalibratedClassifier, Decision
from rightly.classifiers import Preprocessing, open_model
from rightly.decisions.decision import ADAPTED
from rightly.deployment.metadata import read_decision, void_reason
from rightly.deployment.provenance import describe_calibrator
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, predictions
from tests.deployment.tiny_onnx import GUARANTEED


def test_other_weights_are_refused():
    with pytest.raises(ValueError, match="has weights"):
        CalibratedClassifier(Small(seed=1), fitted())


def test_other_preprocessing_is_refused():
    with pytest.raises(ValueError, match="use the same preprocessing"):
        CalibratedClassifier(Small(), fitted(), preprocessing=Preprocessing((16, 16)))


def test_other_class_names_are_refused():
    with pytest.raises(ValueError, match="class 1 is 'lime' here and 'green' there"):
        CalibratedClassifier(Small(), fitted(), class_names=["red", "lime", "blue", "dark"])


def test_names_of_the_classifier_itself_count_where_its_weights_are_unknown():
    calibrator = fitted()
    names = ("red", "lime", "blue", "dark")
    classifier = open_model(Small(), preprocessing=PREPROCESSING)
    classifier.class_names, classifier.class_count = names, 4
    CalibratedClassifier(classifier, calibrator)  # the same weights: names may differ
    calibrator.record = {}
    with pytest.raises(ValueError, match="class 1 is 'lime' here"):
        CalibratedClassifier(classifier, calibrator)


def test_another_number_of_class_names_is_refused():
    with pytest.raises(ValueError, match="must have 4 classes .* got 2"):
        CalibratedClassifier(Small(), fitted(), class_names=["red", "green"])


def test_a_threshold_set_by_hand_drops_what_was_measured_for_another():
    calibrator = fitted(threshold=0.6)
    assert describe_calibrator(calibrator)["decision"]["threshold"] == 0.6
    calibrator.decision = Decision(0.5)
    assert describe_calibrator(calibrator)["decision"] == Decision(0.5).to_dict()
    assert describe_calibrator(fitted())["decision"] is None


def test_a_guarantee_travels_with_the_metadata_and_so_does_its_absence():
    plain = fitted()
    none = Decision(None, "guaranteed", 500, reason="not with these 500 samples")
    for decision in (GUARANTEED, GUARANTEED.voided("adapted data"), none):
        plain.decision = decision
        assert read_decision(describe_calibrator(plain)) == decision


def test_adapting_voids_the_guarantee_in_the_metadata(tmp_path):
    guaranteed = fitted()
    guaranteed.decision = GUARANTEED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a batch that looks like no other
        adapted = guaranteed.adapt(predictions()[0])
    assert guaranteed.decision == GUARANTEED and adapted.decision == GUARANTEED.voided(ADAPTED)
    adapted.save(tmp_path / "c.safetensors")
    loaded = rightly.load_calibrator(tmp_path / "c.safetensors")
    assert loaded.decision.void == ADAPTED and not loaded.decision.is_guaranteed
    assert describe_calibrator(loaded)["decision"]["void"] == ADAPTED
    assert "guarantee void: adapted data" in repr(loaded)


def test_a_decision_made_after_adapting_with_labels_is_not_void():
    adapted = fitted().adapt(*predictions())
    adapted.decision = GUARANTEED
    metadata = describe_calibrator(adapted)
    assert "intercept" in metadata["adapted"] and void_reason(metadata) is None
    assert read_decision(metadata) == GUARANTEED
    assert void_reason(metadata, adapts=True) == ADAPTED
    assert void_reason(metadata, alarm="shift") == "drift alarm (shift)"


def test_a_bare_calibrator_is_described_as_far_as_it_knows():
    bare = rightly.calibrator("temperature_scaling").fit(*predictions())
    metadata = CalibratedClassifier(Small(), bare, preprocessing=PREPROCESSING).metadata
    assert metadata["calibration"] is None and metadata["passes"] == 1
    assert metadata["preprocessing"] == PREPROCESSING.as_dict() and metadata["keeps_class"]
