"""A classifier and its calibrator as one module."""

import pytest
import torch

import rightly
from rightly import CalibratedClassifier
from rightly.calibrators.cascade import EMPTY_BAND
from rightly.deployment.onnx_tracing import silence_tracer
from tests.deployment.tiny_models import (
    PREPROCESSING,
    VIEWS,
    Small,
    fitted,
    pictures,
    predictions,
    to_tensor,
)


def test_forward_gives_logits_of_the_probabilities_and_confidence():
    model = CalibratedClassifier(Small(), fitted())
    images = to_tensor(pictures(5)).float() / 255
    logits, confidence = model(images)
    outputs = model.predict(images)
    raw = Small().eval()(PREPROCESSING.normalise(images))
    scaled = (raw / outputs.temperature[:, None]).log_softmax(-1)
    assert torch.allclose(logits, scaled, atol=1e-5)
    assert torch.allclose(logits.softmax(-1), outputs.probabilities, atol=1e-6)
    assert torch.allclose(logits.softmax(-1).amax(-1), confidence, atol=1e-5)


def test_predict_gives_what_the_calibrator_gives_for_collected_predictions():
    calibrator = fitted(threshold=0.7)
    images = list(pictures(20, seed=3))
    outputs = CalibratedClassifier(Small(), calibrator).predict(images)
    opened = rightly.classifiers.open_model(Small(), preprocessing=PREPROCESSING)
    data = rightly.datasets.open_images([(image, 0) for image in images])
    collected, _ = rightly.collect(opened, data, views=VIEWS)
    assert torch.equal(outputs.classes, collected.classes)
    assert torch.allclose(outputs.confidence.double(), calibrator.confidence(collected), atol=1e-6)
    assert torch.allclose(outputs.raw_confidence.double(), collected.confidence, atol=1e-6)
    assert torch.equal(outputs.accept, calibrator.confidence(collected) >= 0.7)
    assert torch.equal(outputs.view_classes, collected.view_logits.argmax(-1))


def test_each_image_is_judged_alone():
    model = CalibratedClassifier(Small(), fitted(budget=1.8))
    images = list(pictures(12, seed=3))
    together = model.predict(images).confidence
    alone = torch.cat([model.predict([image]).confidence for image in images])
    assert torch.allclose(together, alone, atol=1e-6)


def test_a_budget_spares_views_without_a_gap_in_the_outputs():
    calibrator = fitted(budget=1.8)
    model = CalibratedClassifier(Small(), calibrator)
    seen = []
    model.network.register_forward_hook(lambda *call: seen.append(len(call[1][0])))
    outputs = model.predict(list(pictures(100, seed=4)))
    spared = outputs.view_classes[:, 0] == -1
    assert 0 < spared.sum() < 100
    assert sum(seen) == 100 + len(calibrator.view_names) * int((~spared).sum())
    assert outputs.view_confidence[spared].isnan().all()
    assert outputs.confidence.isfinite().all()


def test_images_that_need_no_views_are_classified_once():
    calibrator = fitted(budget=1.8)
    calibrator.store(band=torch.tensor(EMPTY_BAND, dtype=torch.float64))
    outputs = CalibratedClassifier(Small(), calibrator).predict(list(pictures(5)))
    assert (outputs.view_classes == -1).all() and outputs.confidence.isfinite().all()


def test_a_function_is_taken_and_runs_where_it_likes():
    calibrator, module = fitted(), Small().eval()
    calibrator.record = {}
    model = CalibratedClassifier(
        lambda images: module(images), calibrator, preprocessing=PREPROCESSING, device="cpu"
    )
    images = list(pictures(4))
    ours = CalibratedClassifier(Small(), fitted()).predict(images)
    assert model.device == torch.device("cpu")
    assert torch.allclose(model.predict(images).confidence, ours.confidence, atol=1e-6)


def test_the_classifier_stays_in_evaluation_mode():
    model = CalibratedClassifier(Small(), fitted()).train()
    images = list(pictures(3))
    assert torch.equal(model.predict(images).confidence, model.predict(images).confidence)


def test_methods_that_need_features_get_them():
    model = CalibratedClassifier(Small(), fitted("proximity"))
    assert model.predict(list(pictures(3))).confidence.isfinite().all()


def test_onnx_classifiers_are_taken_as_well(tmp_path):
    path = tmp_path / "c.onnx"
    example = torch.zeros(2, 3, 16, 16)
    with silence_tracer():
        torch.onnx.export(
            Small().eval(),
            (example,),
            path,
            dynamo=True,
            verbose=False,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
    calibrator = fitted()
    calibrator.record = {}
    model = CalibratedClassifier(f"onnx:{path}", calibrator, preprocessing=PREPROCESSING)
    images = list(pictures(4))
    ours = CalibratedClassifier(Small(), fitted()).predict(images)
    assert torch.allclose(model.predict(images).confidence, ours.confidence, atol=1e-5)


def test_another_number_of_classes_is_refused():
    calibrator = fitted()
    calibrator.record = {}
    model = CalibratedClassifier(Small(classes=5), calibrator, preprocessing=PREPROCESSING)
    with pytest.raises(ValueError, match="must have 4 classes"):
        model.predict(list(pictures(2)))


def test_what_is_not_fitted_or_no_calibrator_is_refused():
    with pytest.raises(rightly.NotFittedError):
        CalibratedClassifier(Small(), rightly.calibrator("ca_views"))
    with pytest.raises(TypeError, match="calibrator"):
        CalibratedClassifier(Small(), "cal.safetensors")


def test_a_method_that_looks_at_a_whole_batch_says_so():
    from rightly.calibrators.temperature_network import TemperatureNetwork

    calibrator = TemperatureNetwork("retrieved_scores").fit(*predictions())
    with pytest.raises(ValueError, match="depends on the whole batch"):
        CalibratedClassifier(Small(), calibrator)


def test_confidence_can_be_differentiated_by_the_images():
    images = (to_tensor(pictures(2)).float() / 255).requires_grad_()
    CalibratedClassifier(Small(), fitted("temperature_scaling"))(images).confidence.sum().backward()
    assert images.grad is not None and bool(images.grad.abs().sum() > 0)
