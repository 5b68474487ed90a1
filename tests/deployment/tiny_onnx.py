"""A model file written by hand in milliseconds: the class is the brightest colour channel."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rightly.deployment.metadata import FORMAT, ONNX_KEY, VERSION

METADATA = {
    "format": FORMAT,
    "version": VERSION,
    "method": "temperature_scaling",
    "class_count": 3,
    "class_names": ["red", "green", "blue"],
    "views": [],
    "preprocessing": {"size": [8, 8]},
    "classifier": {"name": "brightest_channel", "fingerprint": None},
    "calibration": None,
    "threshold": {"value": 0.6},
    "passes": 1.0,
}
SHAPES = {
    "classes": (TensorProto.INT64, ["n"]),
    "confidence": (TensorProto.FLOAT, ["n"]),
    "raw_confidence": (TensorProto.FLOAT, ["n"]),
    "temperature": (TensorProto.FLOAT, ["n"]),
    "probabilities": (TensorProto.FLOAT, ["n", 3]),
    "from_the_future": (TensorProto.FLOAT, ["n"]),
}


def write_onnx(path: Path, outputs=tuple(SHAPES)[:5], **changes) -> Path:
    """Outputs in this order; `changes` are entries of the metadata."""
    constants = {"scale": np.float32(8), "two": np.float32(2), "axis": np.array([1])}
    constants["places"] = np.array([2, 3])
    nodes = [
        helper.make_node("ReduceMean", ["images", "places"], ["means"], keepdims=0),
        helper.make_node("Mul", ["means", "scale"], ["logits"]),
        helper.make_node("Div", ["logits", "two"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["probabilities"], axis=1),
        helper.make_node("Softmax", ["logits"], ["raw"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["classes"], axis=1, keepdims=0),
        helper.make_node("ReduceMax", ["probabilities", "axis"], ["confidence"], keepdims=0),
        helper.make_node("ReduceMax", ["raw", "axis"], ["raw_confidence"], keepdims=0),
        helper.make_node("Sub", ["confidence", "confidence"], ["zeros"]),
        helper.make_node("Add", ["zeros", "two"], ["temperature"]),
        helper.make_node("Identity", ["zeros"], ["from_the_future"]),
    ]
    graph = helper.make_graph(
        nodes,
        "brightest channel",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info(name, *SHAPES[name]) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(model, {ONNX_KEY: json.dumps(METADATA | changes)})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path
