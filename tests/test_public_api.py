"""The public names, and what people do first with them."""

import numpy as np
import pytest
import torch

import rightly
from rightly.demo_data import load_demo_set

NAMES = """
Predictions load save concatenate collect calibrator fit Calibrator load_calibrator Decision
evaluate Evaluation compare Comparison report examine CalibratedClassifier Stream register metrics
NotFittedError benchmark View Shift losses
"""


@pytest.fixture(scope="module")
def cal():
    return load_demo_set("cal")


@pytest.fixture(scope="module")
def test():
    return load_demo_set("haze")


@pytest.fixture(scope="module")
def outcomes(cal):
    predictions, labels = cal
    return predictions.confidence.numpy(), (predictions.classes == labels).numpy()


def test_the_public_names_are_these_and_all_can_be_loaded():
    assert sorted(rightly.__all__) == sorted(NAMES.split())
    assert all(getattr(rightly, name) is not None for name in rightly.__all__)
    assert rightly.__version__


def test_fit_takes_the_data_first_and_a_good_method_by_default(cal):
    calibrator = rightly.fit(*cal, accuracy=0.95)
    assert (
        isinstance(calibrator, rightly.Calibrator) and calibrator.method == "correctness_logistic"
    )
    assert calibrator.decision.kind == "guaranteed"
    assert calibrator.threshold == calibrator.decision.threshold


def test_fit_chooses_a_method(cal):
    assert isinstance(rightly.fit(*cal, "auto"), rightly.Calibrator)


def test_a_method_is_fitted_by_itself(cal, test):
    alone = rightly.calibrator("ts").fit(*cal)
    composed = rightly.fit(*cal, "ts", select_views=False)
    assert type(alone) is type(composed)
    torch.testing.assert_close(alone.confidence(test[0]), composed.confidence(test[0]))


def test_a_threshold_is_guaranteed_without_a_calibrator(outcomes):
    decision = rightly.Decision.guarantee(*outcomes, accuracy=0.95)
    confidence, correct = outcomes
    assert correct[confidence >= decision.threshold].mean() >= 0.95


def test_a_decision_is_attached(cal, outcomes):
    predictions, labels = cal
    first = torch.arange(len(labels)) % 2 == 0
    calibrator = rightly.calibrator("ts").fit(predictions[first], labels[first])
    calibrator.decide(predictions[~first], labels[~first], accuracy=0.95)
    assert calibrator.decision.accuracy >= 0.95
    calibrator.decision = rightly.Decision.at(0.8, *outcomes)
    accepted = calibrator.accept(predictions).numpy()
    assert np.array_equal(accepted, calibrator.confidence(predictions).numpy() >= 0.8)


def test_prediction_sets_are_attached(cal, test):
    predictions, labels = cal
    first = torch.arange(len(labels)) % 2 == 0
    calibrator = rightly.calibrator("ts").fit(predictions[first], labels[first])
    calibrator.decide(predictions[~first], labels[~first], coverage=0.9)
    sets = calibrator.prediction_sets(predictions[~first])
    assert sets[torch.arange(len(sets)), labels[~first]].double().mean() >= 0.89


def test_adapting_is_one_verb(cal, test):
    predictions, labels = test
    calibrator = rightly.fit(*cal, accuracy=0.95)
    by_batch = calibrator.adapt(predictions)
    assert by_batch.decision.threshold == calibrator.threshold and by_batch.decision.void
    with pytest.warns(UserWarning, match="drops its decision"):
        by_labels = calibrator.adapt(predictions[:100], labels[:100])
    assert by_labels.decision is None and calibrator.decision.void is None
    with pytest.raises(ValueError, match=r"call learn_shift\(predictions, labels\)"):
        rightly.calibrator("ts").fit(*cal).adapt(predictions)


def test_methods_are_compared_with_intervals_and_adapted(cal, test):
    options = {"methods": ["ts", "rightly"], "metrics": ["ece", "brier"], "resamples": 100}
    comparison = rightly.compare(cal, {"haze": test}, intervals=True, adapt=64, **options)
    assert all(row.low <= row.value <= row.high for row in comparison)


def test_a_report_is_written(cal, test, tmp_path):
    calibrator = rightly.fit(*cal, "ts")
    rightly.report(calibrator, {"haze": test}, tmp_path / "r.html")
    assert "<html" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_method_of_ones_own_is_registered_by_its_class(cal):
    class MeanShift(rightly.Calibrator):
        """Confidence moved to the accuracy of the calibration data on average."""

        def learn(self, predictions, labels):
            right = (predictions.classes == labels).double().mean()
            self.store(offset=right - predictions.confidence.double().mean())

        def compute_confidence(self, predictions):
            return (predictions.confidence + self.offset).clamp(0, 1)

    rightly.register(MeanShift)
    try:
        fitted = rightly.fit(*cal, "mean_shift")
        accuracy = (cal[0].classes == cal[1]).double().mean()
        assert abs(float(fitted.confidence(cal[0]).mean()) - float(accuracy)) < 0.02
    finally:
        from rightly.calibrators import CALIBRATORS

        CALIBRATORS.remove("mean_shift")


def test_a_tensor_may_not_be_named_like_the_state_of_a_calibrator(cal):
    class Shifted(rightly.Calibrator):
        def learn(self, predictions, labels):
            self.store(shift=predictions.confidence.mean())

        def compute_confidence(self, predictions):
            return predictions.confidence

    with pytest.raises(ValueError, match="shift cannot be stored by Shifted"):
        Shifted().fit(*cal)
