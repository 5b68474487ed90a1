"""`open_exported` of .onnx files and one prediction: other metadata, another graph, other bytes."""

import json
import tempfile
from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from rightly.deployment.metadata import ONNX_KEY
from rightly.deployment.runtime import open_exported
from tests.deployment.tiny_onnx import METADATA, SHAPES, write_onnx
from tests.fuzz.mutators import WORDS, mutate_array, mutate_bytes, mutate_json
from tests.fuzz.target import Files, Target

NAME = "a.onnx"
onnxruntime.set_default_logger_severity(4)  # it writes about every damaged file otherwise


def make_samples() -> list[Files]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NAME)
        of_context = ("shift_score", "unadapted_confidence")
        outputs = tuple(name for name in SHAPES if name not in of_context)
        return [
            {NAME: write_onnx(path).read_bytes()},
            {NAME: write_onnx(path, outputs, decision=None, class_names=None).read_bytes()},
        ]


def mutate(random: Random, samples: list[Files]) -> Files:
    data = random.choice(samples)[NAME]
    action = random.random()
    if action < 0.8:
        model = onnx.load_from_string(data)
        if action < 0.55:
            model.metadata_props[0].value = mutate_json(random, METADATA).decode("utf-8", "replace")
        else:
            _change_graph(random, model)
        data = model.SerializeToString()
    if action > 0.7:
        data = mutate_bytes(random, data, random.choice(samples)[NAME], changes=2)
    return {NAME: data}


def _change_graph(random: Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    action = random.randrange(8)
    node = random.choice(graph.node)
    if action == 0:
        constant = random.choice(graph.initializer)
        array = mutate_array(random, numpy_helper.to_array(constant))
        if array.dtype.kind in "fiub" and array.dtype.isnative:
            constant.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), constant.name))
    elif action == 1:
        value = random.choice([*graph.input, *graph.output])
        dims = value.type.tensor_type.shape.dim
        random.choice(dims).dim_value = random.choice((0, 1, 2, 3, 5, -1, 2**31, 2**62))
    elif action == 2:
        value = random.choice([*graph.input, *graph.output])
        value.type.tensor_type.elem_type = random.randrange(24)
    elif action == 3:
        graph.output.remove(random.choice(graph.output))
    elif action == 4:
        value = random.choice([*graph.input, *graph.output])
        value.name = random.choice(("images", "confidence", *WORDS[:8]))
    elif action == 5:
        node.op_type = random.choice(
            ("Identity", "Neg", "Sqrt", "Log", "Tile", "Softmax", "If", "")
        )
    elif action == 6:
        model.opset_import[0].version = random.choice((0, -1, 7, 11, 17, 18, 99, 2**40))
    else:
        entry = model.metadata_props.add()
        entry.key, entry.value = random.choice((ONNX_KEY, "x")), json.dumps(METADATA)


def read(folder: Path) -> None:
    model = open_exported(folder / NAME, threads=1)
    height, width = model.preprocessing.size or (8, 8)
    assert height * width <= 2**22, f"a size of {height} x {width} is no classifier's"
    assert model.class_names is None or all(isinstance(one, str) for one in model.class_names)
    assert model.threshold is None or 0 <= model.threshold <= 1, model.threshold
    outputs = model.predict(np.full((2, height, width, 3), 130, np.uint8))
    for values in (outputs.confidence, outputs.probabilities):
        assert bool(np.isfinite(values).all()), "not finite"
    assert not bool(np.isnan(outputs.temperature).any()), "not a number"
    assert len(outputs.classes) == len(outputs.confidence) == 2


TARGET = Target("onnx", (ValueError,), make_samples, mutate, read)
