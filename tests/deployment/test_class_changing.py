"""A calibrator that changes the predicted class: its classes go through every door."""

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from rightly import CalibratedClassifier
from rightly.calibrators import CALIBRATORS, Method
from rightly.calibrators.families import VectorCalibrator
from rightly.deployment import export_classifier, make_card, open_exported
from rightly.registry import register
from rightly.serving import make_app
from tests.deployment.tiny_models import Small, fitted, pictures, predictions
from tests.serving.clients import encode


class BiasCorrection(VectorCalibrator):
    """Adds a bias to the logits: one that makes the last class more likely."""

    keeps_class = False

    def learn(self, predictions, labels):
        bias = torch.zeros(predictions.class_count)
        bias[-1] = 6.0
        self.store(bias=bias)

    def compute_vectors(self, logits):
        return (logits + self.bias).softmax(-1)


@pytest.fixture(scope="module")
def method():
    register(Method("bias_correction", BiasCorrection, "own", keeps_class=False))
    yield "bias_correction"
    CALIBRATORS.remove("bias_correction")


@pytest.fixture(scope="module")
def model(method):
    return CalibratedClassifier(Small(), fitted(method, threshold=0.5))


def test_classes_are_the_calibrators_in_torch(model):
    collected, _ = predictions()
    images = list(pictures(400, seed=1))  # those that were collected
    outputs = model.predict(images)
    biased = collected.logits + torch.tensor([0, 0, 0, 6.0])
    assert torch.equal(outputs.classes, biased.argmax(-1))
    assert int((outputs.classes != collected.classes).sum()) > 0
    assert torch.equal(outputs.classes, outputs.probabilities.argmax(-1))
    assert torch.allclose(outputs.confidence, biased.softmax(-1).amax(-1), atol=1e-6)
    assert torch.allclose(outputs.raw_confidence, collected.confidence.float(), atol=1e-6)


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_files_and_server_give_the_same_classes(model, tmp_path, suffix):
    metadata = export_classifier(model, tmp_path / f"m{suffix}")
    assert metadata["keeps_class"] is False
    exported, images = open_exported(tmp_path / f"m{suffix}"), list(pictures(30, seed=1))
    expected = model.predict(images).to_numpy()
    outputs = exported.predict(np.stack([exported.preprocessing.pixels(x) for x in images]))
    assert (outputs.classes == expected.classes).all()
    assert np.abs(outputs.confidence - expected.confidence).max() < 1e-5
    files = [
        ("images", (f"{i}.png", encode(Image.fromarray(image), "PNG")))
        for i, image in enumerate(images)
    ]
    with TestClient(make_app(exported)) as client:
        answer = client.post("/predict", files=files).json()
    assert [row["class"] for row in answer["predictions"]] == expected.classes.tolist()
    assert [row["top"][0]["class"] for row in answer["predictions"]] == expected.classes.tolist()


def test_a_card_counts_the_calibrators_classes_as_right_or_wrong(method):
    collected, labels = predictions()
    calibrator = fitted(method)
    right = float((calibrator.classes(collected) == labels).double().mean())
    assert right != float(collected.correct(labels).double().mean())
    card = make_card(calibrator, {"mine": (collected, labels)}, allow_overlap=True)
    assert f"| mine | 400 | {right:.1%} |" in card and "may differ" in card


def test_a_saved_folder_gives_the_same_classes(model, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = CalibratedClassifier.from_pretrained(tmp_path, Small())
    images = list(pictures(20, seed=1))
    assert torch.equal(loaded.predict(images).classes, model.predict(images).classes)
