"""Joining ONNX graphs, in the few steps that onnx.compose leaves to its user."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rightly.optional import require

IR_VERSION = 10  # of the file format; onnxruntime reads it from 1.18 on


def strip_metadata(model: Any, opset: int) -> Any:
    """The model without doc strings, metadata and functions, at one version of operators."""
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions:
        remedy = f"export it again with opset_version={opset}"
        raise ValueError(f"the classifier names no version of ONNX's operators: {remedy}")
    version = versions[0]
    if version != opset:
        converter = require("onnx.version_converter", "onnx")
        try:
            model = converter.convert_version(model, opset)
        except Exception as error:  # raised in C++, without a class of its own
            raise ValueError(
                f"the classifier has version {version} of ONNX's operators and cannot be brought "
                f"to {opset}: export it again with opset_version={opset} ({error})"
            ) from error
    if model.functions:
        model = require("onnx.inliner", "onnx").inline_local_functions(model)
    model.ir_version = IR_VERSION
    model.doc_string, graph = "", model.graph
    del model.metadata_props[:]
    for each in iterate_graphs(graph):
        del each.value_info[:]
        for part in (each, *each.node, *each.input, *each.output, *each.initializer):
            part.doc_string = ""
            del part.metadata_props[:]  # the tracer puts paths of its machine's files there
    initial = {weight.name for weight in graph.initializer}
    for value in [value for value in graph.input if value.name in initial]:
        graph.input.remove(value)  # old exporters list weights as inputs
    return model


def prefix_dimensions(model: Any, prefix: str) -> Any:
    """The model with names of its dimensions that no other has: equal names mean equal sizes."""
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = prefix + dim.dim_param
    return model


def prefix_names(model: Any, prefix: str, keep_ends: bool = False) -> Any:
    """The model with a prefix to all names of values and nodes; inputs and outputs may keep theirs.

    Loops and branches are renamed too: onnx.compose misses the outer values that they use.
    """
    ends = {value.name for value in (*model.graph.input, *model.graph.output)} if keep_ends else ()
    rename_values(model.graph, lambda name: name if name in ends else prefix + name)
    for graph in iterate_graphs(model.graph):
        for node in graph.node:
            node.name = prefix + node.name
    return model


def duplicate(model: Any, prefix: str) -> Any:
    """A second copy, all of its names prefixed."""
    copy = type(model)()
    copy.CopyFrom(model)
    return prefix_dimensions(prefix_names(copy, prefix), prefix)


def share_weights(model: Any, prefix: str) -> None:
    """Lets a duplicate use the weights of the graph that it is a copy of."""
    weights = {weight.name for weight in model.graph.initializer}
    double = [weight for weight in model.graph.initializer if weight.name[len(prefix) :] in weights]
    own = {weight.name: weight.name[len(prefix) :] for weight in double}
    for weight in double:
        model.graph.initializer.remove(weight)
    rename_values(model.graph, lambda name: own.get(name, name))


def iterate_graphs(graph: Any) -> Iterator[Any]:
    """A graph and those of its loops and branches."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from iterate_graphs(inner)


def rename_values(graph: Any, rename: Callable[[str], str]) -> None:
    """Renames all values of a graph, also where its loops and branches use them."""
    for each in iterate_graphs(graph):
        sparse = [part for s in each.sparse_initializer for part in (s.values, s.indices)]
        for value in (*each.input, *each.output, *each.initializer, *each.value_info, *sparse):
            value.name = rename(value.name)
        for node in each.node:
            for values in (node.input, node.output):
                for i, name in enumerate(values):
                    values[i] = rename(name) if name else name  # "" is an input left out


def expose_output(model: Any, name: str, outside: str) -> None:
    """Makes a value that is connected inside an output as well, under another name."""
    helper = require("onnx.helper", "onnx")
    value = next(v for v in (*model.graph.input, *model.graph.output) if v.name == name)
    model.graph.node.append(helper.make_node("Identity", [name], [outside], name=outside))
    copy = model.graph.output.add()
    copy.CopyFrom(value)
    copy.name = outside


def make_optional(model: Any, name: str, outside: str, value: float) -> None:
    """Renames an input and gives it a value that holds unless a caller overrides it."""
    helper = require("onnx.helper", "onnx")
    declared = next(declared for declared in model.graph.input if declared.name == name)
    rename_values(model.graph, lambda value: outside if value == name else value)
    kind = declared.type.tensor_type.elem_type
    model.graph.initializer.append(helper.make_tensor(outside, kind, [], [value]))


def connect(first: Any, second: Any, wires: Mapping[str, str]) -> Any:
    """Both models as one: outputs of the first become inputs of the second."""
    compose = require("onnx.compose", "onnx")
    return compose.merge_models(first, second, io_map=list(wires.items()))


def finalise(model: Any, outputs: Mapping[str, str]) -> Any:
    """The model with its outputs in this order and under these names, checked."""
    checker = require("onnx.checker", "onnx")
    values = {value.name: value for value in model.graph.output}
    kept = [values[name] for name in outputs]
    rename_values(model.graph, lambda name: outputs.get(name, name))
    del model.graph.output[:]
    for value in kept:
        copy = model.graph.output.add()
        copy.CopyFrom(value)
        copy.type.tensor_type.shape.dim[0].dim_param = "n"
    model.producer_name, model.graph.name = "rightly", "calibrated classifier"
    checker.check_model(model)
    return model


def find_logits_output(names: Sequence[str], output: str | int | None, file: object) -> str:
    """The output that holds the logits: the one asked for, "logits", or the only one."""
    if isinstance(output, int) and output < len(names):
        return names[output]
    if output is not None:
        if output not in names:
            raise ValueError(f"output must be one of {list(names)} of {file}, got {output!r}")
        return str(output)
    others = [name for name in names if name != "features"]
    if "logits" not in names and len(others) != 1:
        raise ValueError(f"{file} gives {list(names)}: choose the logits among them with output=")
    return "logits" if "logits" in names else others[0]
