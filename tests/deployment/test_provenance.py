"""A calibrator goes only with the classifier that it was fitted on."""

import pytest

import rightly
from rightly import CalibratedClassifier, Decision, FittedCalibrator
from rightly.classifiers import Preprocessing, open_model
from rightly.deployment.provenance import describe_calibrator
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, predictions


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
    assert describe_calibrator(calibrator)["threshold"]["asked"] == {"threshold": 0.6}
    calibrator.threshold = 0.5
    assert describe_calibrator(calibrator)["threshold"] == {"value": 0.5}
    assert describe_calibrator(fitted())["threshold"] is None


def test_a_promise_travels_with_the_metadata_and_so_does_its_absence():
    promise = Decision(
        0.9, "guaranteed", 500, 310, 0.62, max_error=0.02, assurance=0.95, error_high=0.019
    )
    plain = fitted()
    kept = FittedCalibrator(plain.calibrator, 0.9, {"threshold": promise.to_record(accuracy=0.98)})
    stored = describe_calibrator(kept)["threshold"]
    assert stored["kind"] == "guaranteed" and stored["max_error"] == 0.02
    none = Decision(None, "guaranteed", 500, reason="not with these 500 samples")
    broken = FittedCalibrator(plain.calibrator, None, {"threshold": none.to_record(accuracy=0.98)})
    metadata = describe_calibrator(broken)
    assert metadata["threshold"] is None
    assert metadata["no_threshold"] == "not with these 500 samples"


def test_a_bare_calibrator_is_described_as_far_as_it_knows():
    bare = rightly.calibrator("temperature_scaling").fit(*predictions())
    metadata = CalibratedClassifier(Small(), bare, preprocessing=PREPROCESSING).metadata
    assert metadata["calibration"] is None and metadata["passes"] == 1
    assert metadata["preprocessing"] == PREPROCESSING.as_dict() and metadata["keeps_class"]
