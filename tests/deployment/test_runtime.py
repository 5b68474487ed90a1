"""Exported files at work."""

import json
import pickle

import numpy as np
import onnx
import pytest
import torch

from rightly import CalibratedClassifier, Decision
from rightly.deployment import open_exported
from rightly.deployment.metadata import PROGRAM_FILE, VERSION
from rightly.deployment.onnx_tracing import silence_tracer
from rightly.deployment.outputs import REQUIRED
from rightly.deployment.runtime import ExportedModel
from tests.deployment.tiny_models import NAMES, VIEWS, Small, fitted, pictures, to_tensor
from tests.deployment.tiny_onnx import METADATA, write_onnx
from tests.processes import run_python

MANUAL = Decision(0.6).to_dict()


@pytest.mark.parametrize("kind", [".onnx", ".pt2", "budget"])
def test_a_file_says_what_torch_says(files, kind):
    arguments = {"budget": 1.8} if kind == "budget" else {"threshold": 0.6}
    model = CalibratedClassifier(Small(), fitted(**arguments))
    exported = open_exported(files[kind])
    for count in (1, 3, 64):
        images = pictures(count, seed=9)
        ours, theirs = model.predict(to_tensor(images)).to_numpy(), exported.predict(images)
        for name in ("confidence", "raw_confidence", "probabilities"):
            assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() < 1e-5
        assert np.allclose(ours.temperature, theirs.temperature, rtol=1e-4)
        assert (ours.classes == theirs.classes).all()
        assert (ours.view_classes == theirs.view_classes).all()
        assert np.allclose(ours.view_confidence, theirs.view_confidence, 0, 1e-5, True)
        if kind == "budget":
            assert theirs.accept is None
        else:
            assert (ours.accept == theirs.accept).all()


def test_the_graph_runs_in_onnxruntime_without_torch_or_rightly(files, tmp_path):
    images = pictures(5, seed=9)
    np.save(tmp_path / "x.npy", images.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    code = (
        "import json, sys, numpy, onnxruntime\n"
        "s = onnxruntime.InferenceSession(sys.argv[1])\n"
        "names = ['probabilities', 'confidence', 'temperature', 'accept']\n"
        "p, c, t, a = s.run(names, {'images': numpy.load(sys.argv[2])})\n"
        "assert p.shape == (5, 4) and c.shape == t.shape == a.shape == (5,)\n"
        "assert not {'torch', 'rightly'} & set(sys.modules)\n"
        "print(json.loads(s.get_modelmeta().custom_metadata_map['rightly'])['method'], *c)\n"
    )
    done = run_python("-c", code, files[".onnx"], tmp_path / "x.npy", check=True)
    method, *confidence = done.stdout.split()
    assert method == "ca_views"
    ours = open_exported(files[".onnx"]).predict(images).confidence
    assert np.allclose([float(value) for value in confidence], ours, atol=1e-6)


@pytest.mark.parametrize("kind", [".onnx", ".pt2"])
def test_metadata_and_parity_are_in_the_file(files, kind):
    metadata = open_exported(files[kind]).metadata
    assert metadata["class_names"] == list(NAMES) and metadata["views"] == list(VIEWS)
    assert metadata["preprocessing"]["size"] == [16, 16]
    assert metadata["preprocessing"]["mean"] == [0.4, 0.5, 0.5]
    assert len(metadata["classifier"]["fingerprint"]) == 64
    assert metadata["calibration"]["samples"] == 400
    assert metadata["decision"]["threshold"] == 0.6
    assert metadata["parity"]["images"] == 4 and metadata["parity"]["confidence"] < 1e-5


@pytest.mark.parametrize("kind", [".onnx", ".pt2"])
def test_damaged_files_are_refused(files, kind, tmp_path):
    data = files[kind].read_bytes()
    for i, damaged in enumerate([data[: len(data) // 2], b"", pickle.dumps({"a": 1})]):
        path = tmp_path / f"{i}{kind}"
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a whole|no Rightly metadata"):
            open_exported(path)


def test_graphs_of_others_and_of_other_versions_are_refused(files, tmp_path):
    graph = onnx.load(files[".onnx"])
    note = graph.metadata_props[0]
    for value, message in [
        (note.value.replace(f'"version": {VERSION}', '"version": 99'), "format version 99"),
        ("{", "damaged metadata"),
        (json.dumps({"format": "rightly-deployed", "version": VERSION}), "damaged metadata"),
    ]:
        note.value = value
        onnx.save(graph, tmp_path / "m.onnx")
        with pytest.raises(ValueError, match=message):
            open_exported(tmp_path / "m.onnx")
    del graph.metadata_props[:]
    onnx.save(graph, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="no Rightly metadata"):
        open_exported(tmp_path / "m.onnx")


def test_metadata_in_no_known_encoding_are_refused(tmp_path):
    path = write_onnx(tmp_path / "m.onnx")
    path.write_bytes(path.read_bytes().replace(b"brightest_channel", b"brightest\xffchannel"))
    with pytest.raises(ValueError, match=r"m\.onnx has damaged metadata"):
        open_exported(path)


def test_what_is_no_model_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        open_exported(tmp_path / "m.onnx")
    (tmp_path / "m.bin").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"must end in \.onnx or \.pt2"):
        open_exported(tmp_path / "m.bin")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((0, 16, 16, 3), np.uint8), "empty batch"),
        (np.zeros((1, 20, 8, 3), np.uint8), "must have the size"),
    ],
)
def test_bad_batches_are_refused(tmp_path, images, message):
    with pytest.raises(ValueError, match=message):
        open_exported(write_onnx(tmp_path / "m.onnx")).predict(images)


def test_outputs_are_read_by_name_and_unknown_ones_are_ignored(tmp_path):
    names = ("from_the_future", "temperature", *reversed(REQUIRED))
    model = open_exported(write_onnx(tmp_path / "m.onnx", names, decision=None))
    outputs = model.predict(np.full((2, 8, 8, 3), (10, 200, 30), np.uint8))
    assert outputs.classes.tolist() == [1, 1] and outputs.temperature.tolist() == [2, 2]
    assert outputs.probabilities.shape == (2, 3) and outputs.accept is None


@pytest.mark.parametrize("name", REQUIRED)
def test_a_file_without_a_required_output_is_refused(tmp_path, name):
    path = write_onnx(
        tmp_path / "m.onnx",
        [other for other in (*REQUIRED, "temperature") if other != name],
        decision=None,
    )
    with pytest.raises(ValueError, match=rf"lacks \['{name}'\]: export it again"):
        open_exported(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ["red"]}, "class_names must have 3 names, one per class, got 1"),
        ({"class_names": ["a", "b", 3]}, "class_names must be a list of names"),
        ({"class_names": None, "class_count": 4}, r"probabilities .*\(n, 3\), .* say .*\(n, 4\)"),
        ({"class_count": True}, "class_count must be a number of classes"),
        ({"preprocessing": {"size": [20_000, 20_000]}}, r"\(n, 3, 8, 8\).*\(n, 3, 20000, 20000\)"),
        ({"preprocessing": {"size": [8.0, 8]}}, "size must be two sides in pixels"),
        ({"preprocessing": {"size": [8]}}, "size must be two sides in pixels"),
        ({"preprocessing": {"size": "88"}}, "size must be two sides in pixels"),
        ({"preprocessing": {"size": [8, 8], "resize": "ab"}}, "resize must be a side in pixels"),
        (
            {"preprocessing": {"size": [8, 8], "mean": ["a", "b", "c"]}},
            "mean must be three numbers",
        ),
        ({"preprocessing": {}}, "no size of images"),
        ({"preprocessing": []}, "preprocessing must be a table"),
        ({"views": ["rotation"]}, r"lacks \['view_classes', 'view_confidence'\]"),
        ({"views": "rotation"}, "views must be a list of different names"),
        ({"decision": None}, r"has the outputs \['accept'\]"),
        ({"decision": 0.6}, "decision must be a table"),
        ({"decision": MANUAL | {"threshold": 1.5}}, "decision.threshold must be a number"),
        ({"decision": MANUAL | {"threshold": "0.6"}}, "decision.threshold must be a number"),
        ({"decision": MANUAL | {"accuracy": "high"}}, "decision.accuracy must be a number"),
        ({"passes": 1.5}, "passes must lie between 1 and 1"),
        ({"passes": True}, "passes must be a number from 1 on"),
        ({"method": None}, "method must be text"),
        ({"classifier": {"name": ["x"]}}, "classifier must be a table of text"),
        ({"calibration": {"samples": 3}}, "calibration must be samples, accuracy and metrics"),
        ({"parity": {"images": -1, "kind": "real"}}, "parity must be images, kind"),
        ({"text": "[" * 100_000}, "nested at most 32 deep"),
        ({"text": '{"format": NaN}'}, "must hold numbers, got NaN"),
        ({"text": '{"passes": 1e999}'}, "must hold numbers that fit"),
        ({"text": '{"format": "a", "format": "b"}'}, "each key once"),
        ({"sides": (9, "w")}, r"takes images of floats \(n, 3, 9, w\)"),
        ({"name": "pixels"}, "takes pixels of floats"),
    ],
)
def test_metadata_that_do_not_fit_their_graph_are_refused(tmp_path, changes, message):
    path = write_onnx(tmp_path / "m.onnx", **changes)
    with pytest.raises(ValueError, match=message) as refusal:
        open_exported(path)
    assert str(path) in str(refusal.value)


def test_what_a_graph_leaves_open_is_checked_when_it_runs(tmp_path):
    path = write_onnx(tmp_path / "m.onnx", sides=("h", "w"), width=None)
    image = np.zeros((1, 8, 8, 3), np.uint8)
    assert open_exported(path).predict(image).probabilities.shape == (1, 3)
    open_count = {"class_count": 4, "class_names": None}
    write_onnx(path, sides=("h", "w"), width=None, **open_count)
    with pytest.raises(ValueError, match=r"probabilities of floats \(1, 3\), .*\(1, 4\)"):
        open_exported(path).predict(image)


@pytest.mark.parametrize(
    ("name", "value"),
    [("classes", 3), ("classes", -1), ("confidence", np.nan), ("probabilities", 1.1)],
)
def test_outputs_out_of_range_are_refused(tmp_path, name, value):
    class Forged(ExportedModel):
        def run(self, images, shift_estimate=None):
            return whole.run(images) | {name: np.full_like(whole.run(images)[name], value)}

    whole = open_exported(write_onnx(tmp_path / "m.onnx"))
    with pytest.raises(ValueError, match=f"gave {name} from {value}"):
        Forged(METADATA).predict(np.zeros((2, 8, 8, 3), np.uint8))


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("preprocessing", {"size": [20_000, 20_000]}, r"say images of floats \(n, 3, 20000"),
        ("class_names", ["red"], "class_names must have 4 names"),
        ("views", ["hflip"], r"view_classes of integers \(n, 3\), .*\(n, 1\)"),
    ],
)
def test_metadata_that_do_not_fit_their_program_are_refused(files, tmp_path, entry, value, message):
    extra = {PROGRAM_FILE: ""}
    program = torch.export.load(files[".pt2"], extra_files=extra)
    changed = json.loads(extra[PROGRAM_FILE]) | {entry: value, "passes": 1.0}
    with silence_tracer():
        torch.export.save(
            program, tmp_path / "m.pt2", extra_files={PROGRAM_FILE: json.dumps(changed)}
        )
    with pytest.raises(ValueError, match=message):
        open_exported(tmp_path / "m.pt2")


def test_a_program_without_a_required_output_is_refused(tmp_path):
    class Bare(torch.nn.Module):
        def forward(self, images):
            return {"confidence": images.mean((1, 2, 3))}

    dims = ({0: torch.export.Dim("n")},)
    program = torch.export.export(Bare(), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=dims)
    files = {PROGRAM_FILE: json.dumps(METADATA)}
    with silence_tracer():
        torch.export.save(program, tmp_path / "m.pt2", extra_files=files)
    with pytest.raises(ValueError, match="lacks .*'classes'"):
        open_exported(tmp_path / "m.pt2")


def test_images_must_be_bytes_with_channels_last(tmp_path):
    model = open_exported(write_onnx(tmp_path / "m.onnx"))
    # Past the type checks of the tests, as users call it.
    predict = getattr(type(model).predict, "__wrapped__", type(model).predict)
    with pytest.raises(ValueError, match=r"must be bytes of shape \(n, h, w, 3\)"):
        predict(model, np.zeros((1, 3, 8, 8), np.float32))
