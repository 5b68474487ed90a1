"""Exported .pt2 files at work: the same as `runtime`, in torch."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float

from rightly.deployment.conformance import INPUT, SHIFT_ESTIMATE, check_graph
from rightly.deployment.metadata import PROGRAM_FILE, parse_metadata
from rightly.deployment.runtime import ExportedModel

KINDS = {torch.float32: "floats", torch.int64: "integers", torch.bool: "booleans"}
Described = dict[str, tuple[str, Sequence[Any]]]


@final
class TorchProgram(ExportedModel):
    """A .pt2 file of torch.export. torch unpickles parts of such files: open those you trust."""

    def __init__(self, model: Path | bytes) -> None:
        files = {PROGRAM_FILE: ""}
        source = model if isinstance(model, Path) else "the program"
        try:
            file = model if isinstance(model, Path) else BytesIO(model)
            program = torch.export.load(file, extra_files=files)
        except Exception as error:  # a damaged archive raises nearly anything
            raise ValueError(f"{source} is not a whole program of torch.export: {error}") from error
        super().__init__(parse_metadata(files[PROGRAM_FILE] or None, source))
        check_graph(*_describe_graph(program), self.metadata, source)
        self.module = program.module()

    def run(
        self, images: Float[np.ndarray, "n 3 h w"], shift_estimate: float | None = None
    ) -> dict[str, np.ndarray]:
        given = {}
        adaptation = self.metadata.get("shift_adaptation")
        if adaptation is not None:  # a program has no default values
            own = adaptation["estimate"] if shift_estimate is None else shift_estimate
            given = {SHIFT_ESTIMATE: own}
        with torch.no_grad():
            scalars = {name: torch.tensor(float(value)) for name, value in given.items()}
            outputs = self.module(torch.from_numpy(images), **scalars)
        return {name: value.numpy() for name, value in outputs.items()}


def _describe_graph(program: torch.export.ExportedProgram) -> tuple[Described, Described]:
    """Kind and dimensions of the inputs and outputs of a program."""
    signature, nodes = program.graph_signature, program.graph.nodes
    values = {node.name: node.meta.get("val") for node in nodes}
    inputs = {
        INPUT if i == 0 else name: values.get(name) for i, name in enumerate(signature.user_inputs)
    }
    spec = program.call_spec.out_spec
    names = spec.context if spec is not None and spec.type is dict else ()
    outputs = dict(zip(names, map(values.get, signature.user_outputs), strict=False))
    return _describe(inputs), _describe(outputs)


def _describe(tensors: Mapping[str, Any]) -> Described:
    return {
        name: (
            KINDS.get(value.dtype, str(value.dtype)),
            [size if isinstance(size, int) else None for size in value.shape],
        )
        for name, value in tensors.items()
        if isinstance(value, torch.Tensor)
    }
