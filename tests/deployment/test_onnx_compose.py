"""Joining graphs: what is stripped, renamed and refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from rightly.deployment.onnx_compose import IR_VERSION, find_logits_output, strip_metadata


def make_graph(op="Add", opset=18):
    """One node with a weight that, as in files of old exporters, is listed as an input too."""
    weight = numpy_helper.from_array(np.ones(1, np.float32), "weight")
    shape = ["n", 3]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "weight"], ["y"], doc_string="/home/somebody/model.py")],
        "old",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("weight", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_notes_go_and_weights_are_no_inputs():
    model = strip_metadata(make_graph(), 18)
    assert [value.name for value in model.graph.input] == ["x"]
    assert model.ir_version == IR_VERSION and b"somebody" not in model.SerializeToString()


def test_another_version_of_the_operators_is_converted_or_refused():
    model = strip_metadata(make_graph(opset=16), 18)
    assert [entry.version for entry in model.opset_import] == [18]
    with pytest.raises(ValueError, match=r"has version 16 .* opset_version=18"):
        strip_metadata(make_graph("NoSuchOperator", opset=16), 18)


def test_operators_without_a_version_are_refused():
    model = make_graph()
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(ValueError, match=r"names no version .* opset_version=18"):
        strip_metadata(model, 18)


@pytest.mark.parametrize(
    ("names", "output", "expected"),
    [
        (["scores"], None, "scores"),
        (["scores", "features"], None, "scores"),
        (["scores", "logits"], None, "logits"),
        (["scores", "aux"], 1, "aux"),
        (["scores", "aux"], "aux", "aux"),
    ],
)
def test_the_logits_are_found(names, output, expected):
    assert find_logits_output(names, output, "c.onnx") == expected


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, r"c\.onnx gives \['scores', 'aux'\]: choose the logits"),
        ("logits", r"output must be one of \['scores', 'aux'\] of c\.onnx, got 'logits'"),
        (2, "output must be one of .* got 2"),
    ],
)
def test_logits_that_cannot_be_found_are_asked_for(output, message):
    with pytest.raises(ValueError, match=message):
        find_logits_output(["scores", "aux"], output, "c.onnx")
