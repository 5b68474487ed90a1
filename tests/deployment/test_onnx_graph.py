"""One graph of views, classifier and calibrator."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper

from rightly import CalibratedClassifier, Predictions
from rightly.deployment import export_classifier, open_exported
from rightly.deployment.onnx_graph import build_graph
from rightly.deployment.onnx_tracing import silence_tracer
from rightly.deployment.outputs import OUTPUT_NAMES
from tests.deployment.tiny_models import (
    PREPROCESSING,
    Small,
    fitted,
    pictures,
    predictions,
    to_tensor,
)


def test_no_path_of_this_machine_is_in_the_file(files):
    data = files[".onnx"].read_bytes()
    assert b"site-packages" not in data and b"/rightly/" not in data


def test_the_outputs_are_the_fields_of_the_record_in_their_order(files):
    session = onnxruntime.InferenceSession(files[".onnx"])
    names = [output.name for output in session.get_outputs()]
    assert names == [name for name in OUTPUT_NAMES if name != "in_set"]
    without_threshold = onnxruntime.InferenceSession(files["budget"]).get_outputs()
    assert [output.name for output in without_threshold] == [n for n in names if n != "accept"]


def test_weights_stand_once_in_a_graph_with_a_budget(files):
    shapes = [tuple(weight.dims) for weight in onnx.load(files["budget"]).graph.initializer]
    assert shapes.count((8, 3, 3, 3)) == 1


def write_classifier(path, channels_last=False, batch=None, opset=18):
    class Elsewhere(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Small().eval()

        def forward(self, pixels):
            return self.inner(pixels.permute(0, 3, 1, 2) if channels_last else pixels)

    shape = (2, 16, 16, 3) if channels_last else (2, 3, 16, 16)
    example = torch.zeros(batch or shape[0], *shape[1:])
    dims = None if batch else ({0: torch.export.Dim("n")},)
    with silence_tracer():
        torch.onnx.export(
            Elsewhere(),
            (example,),
            path,
            dynamo=True,
            verbose=False,
            dynamic_shapes=dims,
            opset_version=opset,
            input_names=["pixels"],
            output_names=["scores"],
        )


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_calibrator_is_grafted_onto_somebodys_classifier(tmp_path, channels_last):
    write_classifier(tmp_path / "c.onnx", channels_last, opset=20)
    calibrator = fitted(threshold=0.6)
    calibrator.record = {}
    model = CalibratedClassifier(
        f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
    )
    export_classifier(model, tmp_path / "m.onnx")
    ours = CalibratedClassifier(Small(), fitted(threshold=0.6))
    images = pictures(10, seed=5)
    theirs = open_exported(tmp_path / "m.onnx").predict(images)
    assert (
        np.abs(ours.predict(to_tensor(images)).to_numpy().confidence - theirs.confidence).max()
        < 1e-5
    )


def test_a_classifier_for_one_batch_size_is_refused(tmp_path):
    write_classifier(tmp_path / "c.onnx", batch=1)
    calibrator = fitted("temperature_scaling")
    calibrator.record = {}
    model = CalibratedClassifier(
        f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
    )
    with pytest.raises(ValueError, match="batches of any size"):
        export_classifier(model, tmp_path / "m.onnx")


@pytest.mark.parametrize("arguments", [{"method": "temperature_scaling"}, {"budget": 1.8}])
@pytest.mark.parametrize("declared", [4, 5, "c"])
def test_a_classifier_of_other_classes_is_refused_whatever_it_declares(
    tmp_path, declared, arguments
):
    weights = {"places": np.array([2, 3]), "weight": np.ones((3, 5), np.float32)}
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x", "places"], ["means"], keepdims=0),
            helper.make_node("MatMul", ["means", "weight"], ["scores"]),
        ],
        "five classes",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 16, 16])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["n", declared])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "c.onnx")
    calibrator = fitted(**arguments)
    calibrator.record = {}
    model = CalibratedClassifier(
        f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
    )
    with pytest.raises(ValueError, match="must have 4 classes like .*, got 5"):
        export_classifier(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_features_that_a_file_does_not_give_are_refused(tmp_path):
    write_classifier(tmp_path / "c.onnx")
    calibrator = fitted("proximity")
    calibrator.record = {}
    model = CalibratedClassifier(
        f"onnx:{tmp_path / 'c.onnx'}", calibrator, preprocessing=PREPROCESSING
    )
    with pytest.raises(ValueError, match="must have an output called 'features'"):
        build_graph(model, torch.zeros(2, 3, 16, 16))


@pytest.mark.long
@pytest.mark.parametrize("arguments", [{}, {"budget": 1.8}])
def test_features_go_to_the_calibrator(tmp_path, arguments):
    calibrator = fitted("rightly", neighbours=50, **arguments)
    model = CalibratedClassifier(Small(), calibrator)
    export_classifier(model, tmp_path / "m.onnx", list(pictures(4)))
    images = pictures(20, seed=5)
    expected = model.predict(to_tensor(images)).to_numpy()
    outputs = open_exported(tmp_path / "m.onnx").predict(images)
    assert np.abs(outputs.confidence - expected.confidence).max() < 1e-5


@pytest.mark.long
def test_transcal_is_exported_with_the_temperature_it_was_adapted_to(tmp_path):
    calibrator, (collected, _) = fitted("transcal"), predictions()
    batch = collected[:150]
    sure = Predictions(3 * batch.logits, batch.view_logits, batch.features + 1, batch.view_names)
    adapted = calibrator.adapt(sure)
    model = CalibratedClassifier(Small(), adapted)
    export_classifier(model, tmp_path / "m.onnx", list(pictures(4)))
    outputs = open_exported(tmp_path / "m.onnx").predict(pictures(20, seed=5))
    temperature = float(adapted.temperature(collected[:1]))
    assert abs(temperature / float(calibrator.temperature(collected[:1])) - 1) > 0.1
    assert np.allclose(outputs.temperature, temperature, rtol=1e-5)
