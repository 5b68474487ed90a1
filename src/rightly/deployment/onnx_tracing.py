"""Tracing one torch module into an ONNX model."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rightly.deployment.onnx_compose import prefix_names, strip_metadata

OPSET = 18  # the first that has all the views


def trace_module(
    module: nn.Module, inputs: Mapping[str, tuple[Tensor, str]], outputs: Sequence[str]
) -> Any:
    """A module as an ONNX model; an input is an example and the name of its first dimension.

    A scalar has none ("") and comes last; its name is that of the argument after "head_".
    """
    # Each name of a dimension is one size in the whole joined graph.
    shapes = tuple({0: _make_dimension(name)} if name else {} for _, name in inputs.values())
    examples = tuple(tensor.cpu() for tensor, dimension in inputs.values() if dimension)
    scalars = {
        name.removeprefix("head_"): tensor.cpu()
        for name, (tensor, dimension) in inputs.items()
        if not dimension
    }
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                module.cpu(),
                examples,
                kwargs=scalars,
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                dynamic_shapes=shapes,
                input_names=list(inputs),
                output_names=list(outputs),
            )
    except Exception as error:  # the tracer's own classes, which have no common base
        raise ValueError(
            f"{type(module).__name__} cannot be traced into an ONNX graph: {find_root_cause(error)}"
        ) from error
    assert program is not None
    prefix = outputs[0].split("_")[0] + "_"
    return prefix_names(strip_metadata(program.model_proto, OPSET), prefix, keep_ends=True)


def _make_dimension(name: str) -> Any:
    """A dimension of any size, such as "k", or a multiple of one, such as "3*k"."""
    *factor, base = name.split("*")
    dim = torch.export.Dim(base)
    return int(factor[0]) * dim if factor else dim


def find_root_cause(error: BaseException) -> str:
    """What went wrong first, in one line: tracers wrap it in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or repr(error)).splitlines()[0]


@contextmanager
def silence_tracer() -> Iterator[None]:
    """Without what the tracer and its libraries log and warn about themselves."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
