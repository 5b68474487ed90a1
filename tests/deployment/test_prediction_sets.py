"""Prediction sets in exported files and in the answers of the server."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

import rightly
from rightly.cli import main
from rightly.deployment import export_classifier, open_exported
from rightly.deployment.onnx_graph import list_outputs
from rightly.deployment.onnx_tracing import silence_tracer, trace_module
from rightly.deployment.outputs import read_outputs
from rightly.deployment.parity import compare_outputs
from rightly.deployment.stages import StackedCalibration
from rightly.serving import make_app
from tests.deployment.tiny_models import NAMES, Small, fitted, pictures
from tests.serving.clients import encode


def make_model(**options):
    """Temperature scaling with sets, from 300 pictures that it was not fitted on."""
    calibrated = fitted("temperature_scaling")
    model = rightly.CalibratedClassifier(Small(), calibrated)
    held_out = rightly.Predictions(classify(model, list(pictures(300, seed=2))))
    noise = torch.rand(300, 4, generator=torch.Generator().manual_seed(1)).log().neg().log().neg()
    labels = (held_out.logits / 3 + noise).argmax(-1)
    return rightly.CalibratedClassifier(Small(), calibrated.decide(held_out, labels, **options))


def classify(model, images):
    with torch.no_grad():
        batch = np.stack([model.preprocessing.pixels(Image.fromarray(x)) for x in images])
        return model.compute_outputs(torch.from_numpy(batch).permute(0, 3, 1, 2) / 255)[0]


@pytest.fixture(scope="module")
def model():
    return make_model(coverage=0.8, class_conditional=True)


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "m.onnx"
    metadata = export_classifier(model, path)
    assert metadata["sets"] == model.calibrator.sets.describe() | {"void": None}
    assert metadata["parity"]["in_set_differs"] == 0
    return path


def test_sets_of_a_model_are_those_of_its_predictions(model):
    images = list(pictures(60, seed=3))
    sets = model.calibrator.prediction_sets(rightly.Predictions(classify(model, images)))
    assert torch.equal(model.predict(images).in_set, sets)
    assert 0 < sets.double().mean() < 1


def test_graphs_compute_the_same_sets():
    model = make_model(coverage=0.8, set_score="raps")
    logits = 3 * torch.randn(400, 4, generator=torch.Generator().manual_seed(4))
    logits[::7, 1] = -torch.inf
    logits[1] = 1.0
    inputs = {"stacked": (torch.randn(8, 4), "stack"), "shift_estimate": (torch.tensor(-0.5), "")}
    names = [f"outputs_{name}" for name in list_outputs(model)]
    with silence_tracer():
        graph = trace_module(StackedCalibration(model.calibration), inputs, names)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    for estimate in (0.0, -0.4):
        feed = {"stacked": logits.numpy(), "shift_estimate": np.array(estimate, np.float32)}
        theirs = read_outputs(dict(zip(list_outputs(model), session.run(names, feed), strict=True)))
        with torch.no_grad():
            ours = model.calibration(logits, None, torch.tensor(estimate)).to_numpy()
        assert not theirs.in_set[::7, 1].any() and ours.in_set.any()
        # A score on the threshold may go either way with the last digit of an exponential.
        assert compare_outputs(ours, theirs)["in_set_differs"] <= 2 / ours.in_set.size


def test_files_server_and_command_line_name_the_classes_in_the_set(model, file, tmp_path, capsys):
    exported, images = open_exported(file), list(pictures(20, seed=5))
    shown = np.stack([exported.preprocessing.pixels(Image.fromarray(x)) for x in images])
    outputs = exported.predict(shown)
    assert (outputs.in_set == model.predict(images).in_set.numpy()).all()
    order = np.argsort(-outputs.probabilities, axis=1, kind="stable")
    expected = [
        [NAMES[k] for k in ranked if inside[k]]
        for ranked, inside in zip(order, outputs.in_set, strict=True)
    ]
    encoded = [encode(Image.fromarray(image), "PNG") for image in images]
    files = [("images", (f"{i}.png", data)) for i, data in enumerate(encoded)]
    with TestClient(make_app(exported)) as client:
        answer = client.post("/predict", files=files).json()
        card = client.get("/model").json()
    sets = [[one["name"] for one in row["prediction_set"]] for row in answer["predictions"]]
    assert sets == expected
    assert answer["model"]["coverage"] == 0.8 == card["sets"]["coverage"]
    assert "hold the true class of 80 % of images" in answer["model"]["set_guarantee"]
    with TestClient(make_app(exported, adapt=50)) as client:
        adapted = client.post("/predict", files=files[:1]).json()["model"]
    assert (
        adapted["coverage"] is None and adapted["set_guarantee"] == "guarantee void: adapted data"
    )
    picture = tmp_path / "0.png"
    picture.write_bytes(encoded[0])
    assert main(["predict", str(file), str(picture), "--jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction_set"] == expected[0]


def test_a_program_of_torch_has_sets_too(tmp_path):
    model = make_model(coverage=0.7, set_score="aps")
    export_classifier(model, tmp_path / "m.pt2")
    exported, images = open_exported(tmp_path / "m.pt2"), list(pictures(20, seed=5))
    shown = np.stack([exported.preprocessing.pixels(Image.fromarray(x)) for x in images])
    assert (exported.predict(shown).in_set == model.predict(images).in_set.numpy()).all()
