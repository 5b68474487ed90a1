"""One ONNX graph: views, classifier, evidence and calibrator.

The parts are traced one by one and joined around the classifier, which may come from elsewhere:

    images -> front -> classifier -> head -> probabilities, confidence, temperature, accept, ...

With a budget the classifier stands in the graph twice, over the same weights: once for all images,
once for the views of those that the first look left undecided.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from rightly.calibrators import Cascade
from rightly.classifiers.exported import SessionBackend
from rightly.deployment.calibrated_classifier import CalibratedClassifier
from rightly.deployment.onnx_compose import (
    bare,
    chained,
    finished,
    logits_output,
    own_dimensions,
    pass_on,
    prefixed,
    share_weights,
    twin,
)
from rightly.deployment.stages import First, Front, Head, Said
from rightly.optional import require
from rightly.transforms.image_tensors import Images

OPSET = 18  # the first that has all the views
INPUT = "images"


class Looking(NamedTuple):
    """A classifier's graph, and what its input and outputs are called."""

    graph: Any
    given: str
    logits: str
    features: str | None = None


def joined(model: CalibratedClassifier, example: Images) -> Any:
    """The ONNX model of a calibrated classifier; `example` has two images of its size."""
    require("onnx", "onnx")
    with quietly():
        look = _classifier(model, example)
        cascade = isinstance(model.calibrator, Cascade) and bool(model.views)
        graph = (_with_budget if cascade else _of_all_views)(model, example, look)
    names = output_names(model.head)
    return finished(graph, {f"said_{name}": name for name in names})


def output_names(head: Head) -> list[str]:
    """The outputs of the graph, in their order."""
    said = ["probabilities", "confidence", "temperature"]
    said += [] if head.threshold is None else ["accept"]
    said += ["raw_confidence"]
    return said + (["view_classes", "view_confidence"] if head.view_names else [])


def _of_all_views(model: CalibratedClassifier, example: Images, look: Looking) -> Any:
    front = traced(_front(model, model.views), {INPUT: (example, "n")}, ["front_shown"])
    graph = chained(front, look.graph, {"front_shown": look.given})
    stack = _given(model, look, 2 * (len(model.views) + 1), "stacked", "looks")
    head = traced(_OfStack(model.head), stack, _said(model.head))
    return chained(graph, head, _wires(look, stack))


def _with_budget(model: CalibratedClassifier, example: Images, look: Looking) -> Any:
    front = traced(_front(model, []), {INPUT: (example, "n")}, ["front_shown"])
    pass_on(front, INPUT, "front_images")
    graph = chained(front, look.graph, {"front_shown": look.given})
    logits = _given(model, look, 2, "logits", "n")
    assert isinstance(model.calibrator, Cascade)
    first = traced(First(model.calibrator), {"first_logits": logits["logits"]}, ["first_rows"])
    pass_on(graph, look.logits, "kept_logits")
    graph = chained(graph, first, {look.logits: "first_logits"})
    pass_on(graph, "first_rows", "kept_rows")
    rows = (torch.arange(2), "k")
    again = traced(
        _front(model, model.views, with_original=False),
        {"again_images": (example, "n"), "again_rows": rows},
        ["again_shown"],
    )
    graph = chained(graph, again, {"front_images": "again_images", "first_rows": "again_rows"})
    second = twin(look.graph, "twin_")
    graph = chained(graph, second, {"again_shown": f"twin_{look.given}"})
    share_weights(graph, "twin_")
    stacked = torch.zeros(2 * len(model.views), logits["logits"][0].shape[1])
    given = {
        "head_logits": logits["logits"],
        "head_rows": rows,
        "head_stacked": (stacked, f"{len(model.views)}*k"),
    }
    wires = {"kept_logits": "head_logits", "kept_rows": "head_rows"}
    wires[f"twin_{look.logits}"] = "head_stacked"
    if "logits_features" in logits and look.features is not None:
        given["head_features"] = logits["logits_features"]
        wires[look.features] = "head_features"
    head = traced(_OfSome(model.head), given, _said(model.head))
    return chained(graph, head, wires)


def _front(model: CalibratedClassifier, views: Sequence[Any], **options: Any) -> Front:
    backend = model.opened.backend
    if isinstance(backend, SessionBackend):
        options |= {"channels_last": backend.channels_last, "dtype": backend.dtype}
    return Front(views, model.preprocessing, **options)


def _given(
    model: CalibratedClassifier, look: Looking, rows: int, name: str, dim: str
) -> dict[str, tuple[Tensor, str]]:
    """Example inputs of a head: logits, and features where the calibrator needs them."""
    assert model.calibrator.class_count is not None
    logits = torch.randn(rows, model.calibrator.class_count, generator=torch.Generator())
    given = {name: (logits, dim)}
    if look.features is not None:
        width = model.calibrator.feature_count or 1
        given[f"{name}_features"] = (torch.ones(rows, width), dim)
    return given


def _wires(look: Looking, given: Mapping[str, Any]) -> dict[str, str]:
    outputs = [look.logits, *([] if look.features is None else [look.features])]
    return dict(zip(outputs, given, strict=True))


def _classifier(model: CalibratedClassifier, example: Images) -> Looking:
    """The classifier as a graph: traced where it is a module, as it is where it is ONNX."""
    backend = model.opened.backend
    wants_features = "features" in model.calibrator.needs
    if isinstance(backend, SessionBackend):
        return _foreign(backend, model.opened.output, wants_features)
    if model.network is None:
        raise ValueError(
            f"{model.opened.name} must be a torch module or an ONNX file to go into a graph, got "
            f"{type(backend).__name__}: a function cannot be traced"
        )
    names = ["look_logits", *(["look_features"] if wants_features else [])]
    shown = _front(model, [])(example)
    graph = traced(model.network, {"look_given": (shown, "looks")}, names)
    return Looking(graph, "look_given", *names)


def _foreign(backend: SessionBackend, output: str | int | None, features: bool) -> Looking:
    """Somebody's ONNX classifier, brought to our version of the operators."""
    onnx = require("onnx", "onnx")
    if backend.batch_size is not None:
        raise ValueError(
            f"{backend.file} must take batches of any size, but it is made for {backend.batch_size}"
            ": export the classifier again with a dynamic batch"
        )
    if features and not backend.gives_features:
        raise ValueError(f"{backend.file} must have an output called 'features' for this method")
    model = onnx.load(str(backend.file))
    names = [value.name for value in model.graph.output]
    logits = logits_output(names, output, backend.file)
    kept = [logits, *(["features"] if features else [])]
    for value in [value for value in model.graph.output if value.name not in kept]:
        model.graph.output.remove(value)
    compose = require("onnx.compose", "onnx")
    model = own_dimensions(compose.add_prefix(bare(model, OPSET), "look_"), "look_")
    return Looking(model, f"look_{backend.input}", *(f"look_{name}" for name in kept))


def traced(
    module: nn.Module, given: Mapping[str, tuple[Tensor, str]], outputs: Sequence[str]
) -> Any:
    """A module as an ONNX model whose inputs have any number of rows, named as told."""
    # Each name of a dimension is one size in the whole joined graph.
    shapes = tuple({0: _dimension(name)} for _, name in given.values())
    examples = tuple(tensor.cpu() for tensor, _ in given.values())
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                module.cpu(),
                examples,
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                dynamic_shapes=shapes,
                input_names=list(given),
                output_names=list(outputs),
            )
    except Exception as error:  # the tracer's own classes, which have no common base
        raise ValueError(
            f"{type(module).__name__} cannot be traced into an ONNX graph: {root_of(error)}"
        ) from error
    assert program is not None
    prefix = outputs[0].split("_")[0] + "_"
    return prefixed(bare(program.model_proto, OPSET), prefix)


def _dimension(name: str) -> Any:
    """A dimension of any size, such as "k", or a multiple of one, such as "3*k"."""
    *factor, base = name.split("*")
    dim = torch.export.Dim(base)
    return int(factor[0]) * dim if factor else dim


def root_of(error: BaseException) -> str:
    """What went wrong first, in one line: tracers wrap it in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or repr(error)).splitlines()[0]


@contextmanager
def quietly() -> Iterator[None]:
    """Without what the tracer and its libraries have to say about themselves."""
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


@final
class _OfStack(nn.Module):
    """Head for logits of images and views in one stack, as a tuple of what there is."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, stacked: Tensor, features: Tensor | None = None) -> tuple[Tensor, ...]:
        return present(self.head.of_stack(stacked, features))


@final
class _OfSome(nn.Module):
    """Head for logits of images, and of the views of some of them."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, logits: Tensor, rows: Tensor, stacked: Tensor, features: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        return present(self.head.of_some(logits, rows, stacked, features))


def present(said: Said) -> tuple[Tensor, ...]:
    """What there is of all that a head can say."""
    return tuple(part for part in said if part is not None)


def _said(head: Head) -> list[str]:
    return [f"said_{name}" for name in output_names(head)]
