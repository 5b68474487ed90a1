"""Methods and evidence that are registered at run time obey the contract of the built-in ones."""

from contextlib import contextmanager

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS, Method
from rightly.calibrators.base import Calibrator
from rightly.calibrators.evidence import EVIDENCE, Evidence
from rightly.calibrators.families import VectorCalibrator
from rightly.calibrators.shift_adaptation import finalise_outputs
from rightly.calibrators.temperature_network import TemperatureNetwork
from rightly.registry import register
from tests.conftest import make


class ConstantConfidence(Calibrator):
    """The accuracy of the calibration samples, for everybody."""

    accuracy: torch.Tensor

    def learn(self, predictions, labels):
        self.store(accuracy=(predictions.classes == labels).double().mean())

    def compute_confidence(self, predictions):
        return self.accuracy.expand(predictions.logits.shape[0])


class ClassBias(VectorCalibrator):
    """A bias a class, which moves the predicted class: the log of a ratio of frequencies."""

    keeps_class = False
    bias: torch.Tensor

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__()
        self.strength = strength

    def learn(self, predictions, labels):
        count = predictions.class_count
        truth = torch.bincount(labels, minlength=count).double() + 1
        predicted = torch.bincount(predictions.classes, minlength=count).double() + 1
        self.store(bias=self.strength * (truth / predicted).log())

    def compute_vectors(self, logits):
        return (logits.double() + self.bias).softmax(-1)


CONSTANT = Method("constant_confidence", ConstantConfidence, "baseline", aliases=("constant",))
BIAS = Method("class_bias", ClassBias, "literature", keeps_class=False)


@contextmanager
def registered(record, registry=CALIBRATORS):
    register(record)
    try:
        yield record
    finally:
        registry.remove(record.name)


@pytest.fixture(params=[CONSTANT, BIAS], ids=lambda method: method.name)
def method(request):
    with registered(request.param):
        yield request.param


def make_skewed(n=600):
    """Labels that are class 0 more often than predicted."""
    predictions, labels = make(n=n)
    moved = torch.rand(n, generator=torch.Generator().manual_seed(0)) < 0.5
    return predictions, torch.where(moved, 0, labels)


def test_it_obeys_the_contract(method):
    fitted = rightly.calibrator(method.name).fit(*make_skewed())
    test, _ = make(seed=1)
    classes, confidence = fitted.classes(test), fitted.confidence(test)
    probabilities = fitted.probabilities(test)
    assert torch.equal(probabilities.argmax(-1), classes)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(300).double())
    top = probabilities.gather(-1, classes[:, None]).squeeze(-1)
    torch.testing.assert_close(top, confidence, atol=1e-6, rtol=0)
    assert torch.equal(classes, test.classes) == method.keeps_class
    outputs = fitted.compute_together(test)
    final = finalise_outputs(outputs, test, None)
    assert torch.equal(outputs.classes, classes)
    torch.testing.assert_close(final.confidence, confidence)
    torch.testing.assert_close(final.probabilities, probabilities)
    torch.testing.assert_close(confidence[:7], fitted.confidence(test[:7]))
    assert repr(fitted) == f"<{method.name}, fitted on 600 samples of 10 classes>"


def test_it_is_saved_and_loaded_while_it_is_registered(method, tmp_path):
    path = tmp_path / "c.safetensors"
    fitted = rightly.fit(*make_skewed(), method.name, threshold=0.6)
    fitted.save(path)
    loaded = rightly.load_calibrator(path)
    test, _ = make(seed=1)
    assert loaded.method == method.name
    assert torch.equal(loaded.confidence(test), fitted.confidence(test))
    assert torch.equal(loaded.classes(test), fitted.classes(test))
    assert torch.equal(loaded.accept(test), fitted.confidence(test) >= 0.6)


def test_its_arguments_are_saved_with_it(tmp_path):
    with registered(BIAS):
        built = rightly.calibrator("class_bias", strength=2.0).fit(*make_skewed())
        built.save(tmp_path / "c.safetensors")
        assert rightly.load_calibrator(tmp_path / "c.safetensors").strength == 2.0


def test_a_file_of_an_unknown_method_is_refused_by_its_name(tmp_path):
    path = tmp_path / "c.safetensors"
    with registered(CONSTANT):
        rightly.calibrator("constant").fit(*make()).save(path)
    with pytest.raises(ValueError, match=r"c.safetensors.*method.*'constant_confidence'"):
        rightly.load_calibrator(path)


def test_a_changed_class_counts_in_the_record_of_fit():
    predictions, labels = make_skewed()
    with registered(BIAS):
        fitted = rightly.fit(predictions, labels, "class_bias")
    accuracy = (fitted.classes(predictions) == labels).double().mean()
    assert fitted.record["calibration"]["accuracy"] == pytest.approx(float(accuracy))
    assert accuracy > predictions.correct(labels).double().mean() + 0.02


def test_it_is_listed_with_its_alias_and_may_not_take_a_name(method):
    assert method.name in CALIBRATORS and CALIBRATORS[method.name] is method
    for alias in method.aliases:
        assert CALIBRATORS.find(alias) is method
    with pytest.raises(ValueError, match="exists already"):
        register(method)
    with pytest.raises(ValueError, match="'ts' exists already"):
        register(Method("another", ConstantConfidence, "baseline", aliases=("ts",)))


def test_a_method_that_moves_the_class_takes_no_budget():
    with registered(BIAS), pytest.raises(ValueError, match="keep the predicted class, got class_b"):
        rightly.calibrator("ca_views", budget=1.5, first="class_bias")


def measure_agreement(predictions):
    agree = predictions.view_logits.argmax(-1) == predictions.classes[:, None]
    return agree.double().mean(1, keepdim=True)


AGREEMENT = Evidence("view_agreement", measure_agreement, needs=("view_logits",))


def test_a_network_reads_evidence_by_its_name():
    predictions, labels = make(n=600)
    # Views that see the predicted class exactly where it is right.
    right = predictions.correct(labels)[:, None, None]
    views = torch.where(right, predictions.logits[:, None], -predictions.logits[:, None])
    predictions = Predictions(predictions.logits, views.expand(-1, 3, -1))
    with registered(AGREEMENT, EVIDENCE):
        network = TemperatureNetwork(evidence="view_agreement", loss="cross_entropy")
        assert network.needs == ("view_logits",) and network.is_pointwise
        temperature = network.fit(predictions, labels).temperature(predictions)
    agreement = measure_agreement(predictions).squeeze(-1)
    assert agreement.unique().tolist() == [0, 1]
    for level in (0, 1):
        assert float(temperature[agreement == level].std()) < 1e-9
    assert temperature[agreement == 0][0] > 2 * temperature[agreement == 1][0]


def test_evidence_is_refused_where_its_input_is_missing():
    predictions, labels = make(n=100)
    with registered(AGREEMENT, EVIDENCE):
        network = TemperatureNetwork(evidence="view_agreement")
        with pytest.raises(ValueError, match="needs predictions with view_logits"):
            network.fit(Predictions(predictions.logits), labels)


def test_evidence_of_the_batch_makes_a_network_that_is_not_pointwise():
    with registered(Evidence("batch", measure_agreement, is_pointwise=False), EVIDENCE):
        assert not TemperatureNetwork(evidence="batch").is_pointwise


def test_a_record_of_no_registry_is_refused():
    with pytest.raises(TypeError, match="record must be one of .*Method"):
        register("platt")
