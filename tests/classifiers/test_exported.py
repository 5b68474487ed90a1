"""Graphs of ONNX and programs of torch.export."""

import pytest
import torch
from torch import nn

from rightly.classifiers import Preprocessing, open_model
from tests.classifiers.example_models import said


def write_onnx(path, nodes, inputs, outputs, constants=()):
    import onnx

    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(*node[:3], **node[3]) for node in nodes],
        "small",
        [info(name, kind, shape) for name, kind, shape in inputs],
        [info(name, kind, shape) for name, kind, shape in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(model, path)
    return f"onnx:{path}"


def mean_graph(path, shape, axes=(2, 3), kind=1, features=False, names=("logits",)):
    """A graph whose logits are the mean colours."""
    nodes = [("ReduceMean", ["x"], [name], {"axes": list(axes), "keepdims": 0}) for name in names]
    outputs = [(name, kind, [None, 3]) for name in names]
    if features:
        nodes.append(("Flatten", ["x"], ["features"], {}))
        outputs.append(("features", kind, [None, None]))
    return write_onnx(path, nodes, [("x", kind, shape)], outputs)


@pytest.mark.parametrize(
    ("shape", "axes", "size", "batch"),
    [
        (["n", 3, "h", "w"], (2, 3), None, None),
        (["n", 3, 12, 12], (2, 3), (12, 12), None),
        (["n", "channels", "h", "w"], (2, 3), None, None),
        (["n", 12, 12, 3], (1, 2), (12, 12), None),
        (["n", "h", "w", 3], (1, 2), None, None),
        ([1, 3, 12, 12], (2, 3), (12, 12), 1),
        ([3, 3, 12, 12], (2, 3), (12, 12), 3),
    ],
)
def test_onnx_graphs_tell_their_input_themselves(tmp_path, images, shape, axes, size, batch):
    pytest.importorskip("onnxruntime")
    classifier = open_model(mean_graph(tmp_path / "m.onnx", shape, axes), device="cpu")
    assert classifier.preprocessing == Preprocessing(size)
    assert classifier.backend.batch_size == batch
    logits, _ = said(classifier, images)
    assert torch.allclose(logits, images.mean((2, 3)), atol=1e-6) and logits.shape == (4, 3)


def test_onnx_graphs_may_be_in_half_precision_and_name_their_features(tmp_path, images):
    pytest.importorskip("onnxruntime")
    spec = mean_graph(tmp_path / "m.onnx", ["n", 3, "h", "w"], kind=10, features=True)
    logits, features = said(open_model(spec, features=True), images, features=True)
    assert logits.dtype == features.dtype == torch.float32
    assert torch.allclose(logits, images.mean((2, 3)), atol=2e-3)
    assert torch.allclose(features, images.flatten(1), atol=2e-3)


def test_onnx_graphs_that_do_not_fit_are_refused(tmp_path, images):
    pytest.importorskip("onnxruntime")
    fixed = mean_graph(tmp_path / "m.onnx", ["n", 3, 12, 12], names=("a", "b"))
    with pytest.raises(ValueError, match="features .* no output called 'features'"):
        open_model(fixed, features=True)
    with pytest.raises(ValueError, match=r"images of size \(12, 12\).*got size \(10, 10\)"):
        open_model(fixed, preprocessing=Preprocessing((10, 10)))
    with pytest.raises(ValueError, match=r"gives \['a', 'b'\]: choose"):
        said(open_model(fixed), images)
    assert said(open_model(fixed, output="b"), images)[0].shape == (4, 3)
    grey = mean_graph(tmp_path / "grey.onnx", ["n", 1, 12, 12])
    with pytest.raises(ValueError, match=r"one float batch of images.*\['n', 1, 12, 12\]"):
        open_model(grey)
    with pytest.raises(FileNotFoundError, match="no model file nothing.onnx"):
        open_model("onnx:nothing.onnx")
    (tmp_path / "text.onnx").write_text("not a graph")
    with pytest.raises(ValueError, match="cannot be loaded as an ONNX graph"):
        open_model(f"onnx:{tmp_path / 'text.onnx'}")


def test_onnx_fingerprints_see_weights_beside_the_graph(tmp_path):
    pytest.importorskip("onnxruntime")
    spec = mean_graph(tmp_path / "m.onnx", ["n", 3, 12, 12])
    alone = open_model(spec).fingerprint
    (tmp_path / "m.onnx.data").write_bytes(b"weights")
    assert open_model(spec).fingerprint != alone


@pytest.mark.filterwarnings("ignore")
def test_an_exported_onnx_classifier_agrees_with_torch(tmp_path, small, images):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "small.onnx"
    dynamic = {"x": {0: torch.export.Dim("n", min=1, max=64)}}
    torch.onnx.export(small, (images,), path, dynamo=True, dynamic_shapes=dynamic, verbose=False)
    classifier = open_model(
        f"onnx:{path}", preprocessing=Preprocessing((12, 12), None, *("bilinear",))
    )
    for n in (1, 3, 4):
        logits, _ = said(classifier, images[:n])
        with torch.no_grad():
            assert torch.allclose(logits, small(images[:n]), atol=1e-5)


@pytest.mark.parametrize("batch", ["dynamic", "fixed"])
def test_exported_programs_are_run(tmp_path, small, images, batch):
    dynamic = {"x": {0: torch.export.Dim("n", min=1, max=64)}} if batch == "dynamic" else None
    program = torch.export.export(small, (images[:3],), dynamic_shapes=dynamic)
    torch.export.save(program, tmp_path / "small.pt2")
    classifier = open_model(f"pt2:{tmp_path / 'small.pt2'}")
    assert classifier.preprocessing.size == (12, 12)
    assert classifier.backend.batch_size == (None if batch == "dynamic" else 3)
    for n in (1, 2, 4):
        logits, _ = said(classifier, images[:n])
        with torch.no_grad():
            assert torch.allclose(logits, small(images[:n]), atol=1e-5)
    assert len(classifier.fingerprint) == 64
    with pytest.raises(ValueError, match="no nn.Linear ran"):
        said(classifier, images, features=True)


def test_programs_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        open_model("pt2:nothing.pt2")
    (tmp_path / "text.pt2").write_text("no program")
    with pytest.raises(ValueError, match="cannot be loaded as an exported program"):
        open_model(f"pt2:{tmp_path / 'text.pt2'}")
    torch.export.save(torch.export.export(nn.Linear(3, 2), (torch.rand(4, 3),)), tmp_path / "l.pt2")
    with pytest.raises(ValueError, match=r"one batch of images.*\(4, 3\)"):
        open_model(f"pt2:{tmp_path / 'l.pt2'}")
