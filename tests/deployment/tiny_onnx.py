"""A model file written by hand in milliseconds: the class is the brightest colour channel."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rightly import Decision
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
    "decision": Decision(0.6).to_dict(),
    "has_temperature": True,
    "passes": 1.0,
}
GUARANTEED = Decision(
    0.6, "guaranteed", 1000, 0.7, max_error=0.02, confidence_level=0.95, error_bound=0.01
)
SHAPES = {
    "classes": (TensorProto.INT64, ["n"]),
    "confidence": (TensorProto.FLOAT, ["n"]),
    "raw_confidence": (TensorProto.FLOAT, ["n"]),
    "temperature": (TensorProto.FLOAT, ["n"]),
    "probabilities": (TensorProto.FLOAT, ["n", 3]),
    "accept": (TensorProto.BOOL, ["n"]),
    "from_the_future": (TensorProto.FLOAT, ["n"]),
    "shift_score": (TensorProto.FLOAT, ["n"]),
    "unadapted_confidence": (TensorProto.FLOAT, ["n"]),
}
ADAPTATION = {
    "estimate": 0.0,
    "weights": [0.5, 0.0, 0.0],
    "limits": [-3.0, 1.0],
    "noise": 2.0,
    "misses": [0.02, -0.01],
    "kind_estimates": [-0.5, -1.0],
    "quantile": 6.31,
}


def write_adaptable(path: Path, **changes) -> Path:
    """One that takes a context: its score is the log-odds of its confidence, less 2."""
    names = (*tuple(SHAPES)[:6], "shift_score", "unadapted_confidence")
    return write_onnx(path, names, shift_adaptation=ADAPTATION, **changes)


def write_onnx(
    path: Path,
    outputs=tuple(SHAPES)[:6],
    sides=(8, 8),
    width=3,
    name="images",
    text=None,
    **changes,
) -> Path:
    """Outputs in this order; `changes` are entries of the metadata, `text` stands for all of them.

    `sides` of images and `width` of the probabilities are what the graph says of itself; a width of
    None is one that nobody knows before the graph has run.
    """
    constants = {"scale": np.float32(8), "two": np.float32(2), "axis": np.array([1])}
    constants |= {"places": np.array([2, 3]), "threshold": np.float32(0.6)}
    nodes = [
        helper.make_node("ReduceMean", [name, "places"], ["means"], keepdims=0),
        helper.make_node("Mul", ["means", "scale"], ["logits" if width else "products"]),
        helper.make_node("Div", ["logits", "two"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["probabilities"], axis=1),
        helper.make_node("Softmax", ["logits"], ["raw"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["classes"], axis=1, keepdims=0),
        helper.make_node("ReduceMax", ["probabilities", "axis"], ["confidence"], keepdims=0),
        helper.make_node("ReduceMax", ["raw", "axis"], ["raw_confidence"], keepdims=0),
        helper.make_node("Sub", ["confidence", "confidence"], ["zeros"]),
        helper.make_node("Add", ["zeros", "two"], ["temperature"]),
        helper.make_node("GreaterOrEqual", ["confidence", "threshold"], ["accept"]),
        helper.make_node("Identity", ["zeros"], ["from_the_future"]),
    ]
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, *sides])]
    if changes.get("shift_adaptation"):
        declared.append(helper.make_tensor_value_info("shift_estimate", TensorProto.FLOAT, []))
        constants |= {
            "shift_estimate": np.float32(0),
            "one": np.float32(1),
            "half": np.float32(0.5),
        }
        nodes[6] = helper.make_node(
            "ReduceMax", ["probabilities", "axis"], ["unadapted_confidence"], keepdims=0
        )
        nodes[7:7] = [
            helper.make_node("Sub", ["one", "unadapted_confidence"], ["wrong"]),
            helper.make_node("Div", ["unadapted_confidence", "wrong"], ["odds"]),
            helper.make_node("Log", ["odds"], ["score"]),
            helper.make_node("Sub", ["score", "two"], ["shift_score"]),
            helper.make_node("Mul", ["half", "shift_estimate"], ["moved"]),
            helper.make_node("Add", ["score", "moved"], ["adapted"]),
            helper.make_node("Sigmoid", ["adapted"], ["confidence"]),
        ]
    if not width:
        constants["kept"] = np.ones(3, bool)
        nodes.insert(2, helper.make_node("Compress", ["products", "kept"], ["logits"], axis=1))
    shapes = SHAPES | {"probabilities": (TensorProto.FLOAT, ["n", width])}
    graph = helper.make_graph(
        nodes,
        "brightest channel",
        declared,
        [helper.make_tensor_value_info(output, *shapes[output]) for output in outputs],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    helper.set_model_props(model, {ONNX_KEY: text or json.dumps(METADATA | changes)})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path
