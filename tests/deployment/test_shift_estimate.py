"""Shift estimates of files: a score that goes out, a scalar that comes in, and the rule between."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import rightly
from rightly import CalibratedClassifier
from rightly.decisions.expected_accuracy import ShiftConstants
from rightly.deployment import export_classifier, export_model, open_exported
from rightly.deployment.metadata import ONNX_KEY
from rightly.serving.stream_adapter import StreamAdapter
from tests.deployment.tiny_models import (
    PREPROCESSING,
    VIEWS,
    Small,
    fitted,
    pictures,
    predictions,
    to_tensor,
)

STORED = pictures(24, seed=9)
IMAGES = np.stack([PREPROCESSING.pixels(Image.fromarray(image)) for image in STORED])
SCALED = np.ascontiguousarray(IMAGES.transpose(0, 3, 1, 2)).astype(np.float32) / 255


def collect(images):
    opened = rightly.classifiers.open_model(Small(), preprocessing=PREPROCESSING)
    data = rightly.datasets.open_images([(image, 0) for image in images])
    return rightly.collect(opened, data, views=VIEWS)[0]


@pytest.mark.parametrize("kind", [".onnx", "budget"])
def test_onnxruntime_runs_with_and_without_the_input(files, kind):
    session = onnxruntime.InferenceSession(files[kind])
    assert [value.name for value in session.get_inputs()] == ["images"]
    (optional,) = session.get_overridable_initializers()
    assert (optional.name, optional.shape, optional.type) == ("shift_estimate", [], "tensor(float)")
    names = ["confidence", "unadapted_confidence", "shift_score", "probabilities", "classes"]
    without = session.run(names, {"images": SCALED})
    at_none = session.run(names, {"images": SCALED, "shift_estimate": np.array(0, np.float32)})
    for a, b in zip(without, at_none, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(without[0], without[1])

    metadata = json.loads(session.get_modelmeta().custom_metadata_map[ONNX_KEY])
    limits = metadata["shift_adaptation"]["limits"]
    at = limits[0] / 2
    arguments = {"budget": 1.8} if kind == "budget" else {"threshold": 0.6}
    ours = CalibratedClassifier(Small(), fitted(**arguments)).predict(to_tensor(IMAGES), at)
    theirs = session.run(names, {"images": SCALED, "shift_estimate": np.array(at, np.float32)})
    for name, value in zip(names, theirs, strict=True):
        assert np.allclose(value, getattr(ours.to_numpy(), name), atol=1e-4), name
    assert (theirs[0] < without[0] - 1e-3).all() and np.array_equal(theirs[4], without[4])
    assert np.array_equal(theirs[1], without[0]) and np.array_equal(theirs[2], without[2])


def test_a_caller_without_rightly_adapts_by_the_metadata_alone(files):
    exported, calibrator = open_exported(files[".onnx"]), fitted(threshold=0.6)
    table = exported.metadata["shift_adaptation"]
    scores = exported.predict(IMAGES).shift_score
    low, high = table["limits"]
    context = np.clip(scores.mean(), low, high) * len(scores) / (len(scores) + table["noise"])
    constants = ShiftConstants.of(table)
    assert constants.estimate(float(scores.mean()), len(scores)) == pytest.approx(context)
    adapted = exported.predict(IMAGES, float(context))
    unlabelled = collect(STORED)
    expected = calibrator.adapt(unlabelled).confidence(unlabelled)
    assert np.allclose(adapted.confidence, expected, atol=1e-5)
    s = np.log(adapted.unadapted_confidence / (1 - adapted.unadapted_confidence))
    level, slope, curve = table["weights"]
    by_hand = 1 / (1 + np.exp(-(s + (level + slope * s + curve * abs(context)) * context)))
    assert np.allclose(by_hand, adapted.confidence, atol=1e-4)


def test_python_and_server_answer_the_same_stream_alike(files):
    stream = rightly.Stream(fitted(threshold=0.6), window=12)
    server = StreamAdapter(open_exported(files[".onnx"]), 12)
    for start in range(0, len(STORED), 5):
        rows = slice(start, start + 5)
        expected, found = stream.observe(collect(STORED[rows])), server.predict(IMAGES[rows])
        assert np.allclose(found.confidence, expected, atol=1e-5)
        estimate = server.stream.shift_estimate
        assert estimate == pytest.approx(stream.shift_estimate, abs=1e-4) and estimate != 0
    expected, found = stream.expected_accuracy, server.stream.expected_accuracy
    assert found == pytest.approx(expected, abs=2e-3, nan_ok=True)


def test_a_program_of_torch_takes_the_context_by_name(files):
    exported = open_exported(files[".pt2"])
    plain = exported.predict(IMAGES)
    assert np.array_equal(plain.confidence, exported.predict(IMAGES, 0.0).confidence)
    at = exported.metadata["shift_adaptation"]["limits"][0]
    program = torch.export.load(files[".pt2"]).module()
    outputs = program(torch.from_numpy(SCALED), shift_estimate=torch.tensor(at))
    found = outputs["confidence"].detach().numpy()
    assert np.allclose(found, exported.predict(IMAGES, at).confidence, atol=1e-6)
    assert (found < plain.confidence).all()


def test_the_default_is_the_context_that_the_calibrator_is_adapted_to(tmp_path):
    adapted = fitted("temperature_scaling").adapt(collect(STORED // 4))
    value = float(adapted.shift.estimate)
    assert value != 0
    metadata = export_model(Small(), adapted, tmp_path / "m.onnx")
    assert metadata["shift_adaptation"]["estimate"] == value
    assert metadata["adapted"] == {"samples": len(IMAGES), "shift_estimate": value}
    exported, unlabelled = open_exported(tmp_path / "m.onnx"), collect(STORED)
    plain = fitted("temperature_scaling")
    for context, calibrator in ((None, adapted), (0.0, plain)):
        found = exported.predict(IMAGES, context).confidence
        assert np.allclose(found, calibrator.confidence(unlabelled), atol=1e-5)

    without = export_model(Small(), adapted, tmp_path / "n.pt2", adaptable=False)
    assert "shift_adaptation" not in without and without["adapted"] == metadata["adapted"]
    fixed = open_exported(tmp_path / "n.pt2")
    outputs = fixed.predict(IMAGES)
    assert outputs.shift_score is None and outputs.unadapted_confidence is None
    assert np.allclose(outputs.confidence, exported.predict(IMAGES).confidence, atol=1e-5)
    with pytest.raises(ValueError, match="shift_estimate needs a model that can be adapted"):
        fixed.predict(IMAGES, -0.5)


def test_a_context_beyond_the_limits_is_clipped_and_one_that_is_no_number_refused():
    model = CalibratedClassifier(Small(), fitted("temperature_scaling"))
    low = float(model.shift_adaptation.limits[0])
    lowest, beyond = (model.predict(to_tensor(IMAGES), at) for at in (low, 10 * low))
    assert torch.equal(lowest.confidence, beyond.confidence)
    with pytest.raises(ValueError, match="shift_estimate must be a finite number, got nan"):
        model.predict(to_tensor(IMAGES), float("nan"))


def test_a_calibrator_that_cannot_be_adapted_gives_a_file_as_before(tmp_path):
    collected, labels = collect(pictures(80, seed=2)).without_views(), np.arange(80) % 4
    calibrator = rightly.calibrator("temperature_scaling").fit(collected, labels)
    model = CalibratedClassifier(Small(), calibrator, preprocessing=PREPROCESSING)
    assert model.shift_adaptation is None and "shift_adaptation" not in model.metadata
    assert model.predict(to_tensor(IMAGES)).shift_score is None
    metadata = export_classifier(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert not session.get_overridable_initializers() and "shift_adaptation" not in metadata
    assert "shift_score" not in [output.name for output in session.get_outputs()]


@pytest.mark.parametrize("options", [{"method": "temperature_scaling"}, {"budget": 1.8}])
def test_a_calibrator_adapted_with_labels_is_exported_as_it_is(tmp_path, options):
    before = fitted(**options)
    collected, labels = predictions()
    wrong = (labels + (torch.arange(len(labels)) % 3 == 0)) % 4
    after = before.adapt(before.select_views(collected), wrong)
    metadata = export_model(Small(), after, tmp_path / "m.onnx")
    assert metadata["adapted"]["samples"] == 400 and "shift_adaptation" not in metadata
    ours = CalibratedClassifier(Small(), after).predict(to_tensor(IMAGES)).to_numpy()
    theirs = open_exported(tmp_path / "m.onnx").predict(IMAGES)
    assert np.abs(ours.confidence - theirs.confidence).max() < 1e-4
    old = CalibratedClassifier(Small(), before).predict(to_tensor(IMAGES)).to_numpy()
    assert np.array_equal(old.classes, theirs.classes)
    assert np.abs(old.confidence - theirs.confidence).max() > 0.01
