"""One ONNX graph: views, classifier, evidence and calibrator.

The stages are traced one by one and joined around the classifier, which may come from elsewhere:

    images -> views -> classifier -> calibration -> the fields of Outputs

With a budget the classifier stands in the graph twice, over the same weights: once for all images,
once for the views of those inside the deferral band.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rightly.calibrators import Cascade
from rightly.classifiers.exported import SessionBackend
from rightly.deployment.calibrated_classifier import CalibratedClassifier
from rightly.deployment.conformance import INPUT, SHIFT_ESTIMATE
from rightly.deployment.onnx_compose import (
    connect,
    duplicate,
    expose_output,
    finalise,
    find_logits_output,
    make_optional,
    prefix_dimensions,
    prefix_names,
    share_weights,
    strip_metadata,
)
from rightly.deployment.onnx_tracing import OPSET, silence_tracer, trace_module
from rightly.deployment.stages import (
    DeferralStage,
    DeferredCalibration,
    StackedCalibration,
    ViewStage,
)
from rightly.optional import require
from rightly.transforms.image_tensors import Images

HEAD_ESTIMATE = "head_shift_estimate"
PREFIX = "outputs_"  # until the graph is whole, for no classifier has such names


class ClassifierGraph(NamedTuple):
    """A classifier's graph, and the names of its input and outputs."""

    graph: Any
    input: str
    logits: str
    features: str | None = None


def build_graph(model: CalibratedClassifier, example: Images) -> Any:
    """The ONNX model of a calibrated classifier; `example` has two images of its size."""
    require("onnx", "onnx")
    require("onnxscript", "onnx")
    with silence_tracer():
        classifier = _make_classifier(model, example)
        has_budget = isinstance(model.calibrator, Cascade) and bool(model.views)
        build = _build_deferred if has_budget else _build_stacked
        graph = build(model, example, classifier)
    if model.shift_adaptation is not None:
        make_optional(graph, HEAD_ESTIMATE, SHIFT_ESTIMATE, float(model.shift_adaptation.estimate))
    return finalise(graph, {PREFIX + name: name for name in list_outputs(model)})


def list_outputs(model: CalibratedClassifier) -> list[str]:
    """The names of the outputs that a model gives, in the order of Outputs."""
    rows = len(model.views) + 1  # of one image
    features = _example_features(model, rows) if "features" in model.calibrator.needs else None
    with torch.no_grad():
        return list(model.calibration(_example_logits(model, rows), features).to_dict())


def _build_stacked(
    model: CalibratedClassifier, example: Images, classifier: ClassifierGraph
) -> Any:
    views = trace_module(_make_views(model, model.views), {INPUT: (example, "n")}, ["views_batch"])
    graph = connect(views, classifier.graph, {"views_batch": classifier.input})
    rows = 2 * (len(model.views) + 1)
    inputs = {"head_stacked": (_example_logits(model, rows), "stack")}
    wires = {classifier.logits: "head_stacked"}
    if classifier.features is not None:
        inputs["head_features"] = (_example_features(model, rows), "stack")
        wires[classifier.features] = "head_features"
    inputs |= _example_estimate(model)
    stage = trace_module(StackedCalibration(model.calibration), inputs, _name_outputs(model))
    return connect(graph, stage, wires)


def _build_deferred(
    model: CalibratedClassifier, example: Images, classifier: ClassifierGraph
) -> Any:
    originals = trace_module(_make_views(model, []), {INPUT: (example, "n")}, ["views_batch"])
    expose_output(originals, INPUT, "views_images")
    graph = connect(originals, classifier.graph, {"views_batch": classifier.input})
    logits = (_example_logits(model, 2), "n")
    assert isinstance(model.calibrator, Cascade)
    deferral = trace_module(
        DeferralStage(model.calibrator), {"deferral_logits": logits}, ["deferral_rows"]
    )
    expose_output(graph, classifier.logits, "kept_logits")
    graph = connect(graph, deferral, {classifier.logits: "deferral_logits"})
    expose_output(graph, "deferral_rows", "kept_rows")
    rows = (torch.arange(2), "k")
    views = trace_module(
        _make_views(model, model.views, with_original=False),
        {"again_images": (example, "n"), "again_rows": rows},
        ["again_batch"],
    )
    wires = {"views_images": "again_images", "deferral_rows": "again_rows"}
    graph = connect(graph, views, wires)
    second = duplicate(classifier.graph, "second_")
    graph = connect(graph, second, {"again_batch": f"second_{classifier.input}"})
    share_weights(graph, "second_")
    m = len(model.views)
    inputs = {
        "head_logits": logits,
        "head_rows": rows,
        "head_views": (torch.zeros(2 * m, logits[0].shape[1]), f"{m}*k"),
    }
    wires = {"kept_logits": "head_logits", "kept_rows": "head_rows"}
    wires[f"second_{classifier.logits}"] = "head_views"
    if classifier.features is not None:
        inputs["head_features"] = (_example_features(model, 2), "n")
        wires[classifier.features] = "head_features"
    inputs |= _example_estimate(model)
    stage = trace_module(DeferredCalibration(model.calibration), inputs, _name_outputs(model))
    return connect(graph, stage, wires)


def _make_views(model: CalibratedClassifier, views: Sequence[Any], **options: Any) -> ViewStage:
    backend = model.classifier.backend
    if isinstance(backend, SessionBackend):
        options |= {"channels_last": backend.channels_last, "dtype": backend.dtype}
    return ViewStage(views, model.preprocessing, **options)


def _example_logits(model: CalibratedClassifier, rows: int) -> Tensor:
    assert model.calibrator.class_count is not None
    return torch.randn(rows, model.calibrator.class_count, generator=torch.Generator())


def _example_features(model: CalibratedClassifier, rows: int) -> Tensor:
    return torch.ones(rows, model.calibrator.feature_count or 1)


def _example_estimate(model: CalibratedClassifier) -> dict[str, tuple[Tensor, str]]:
    return {HEAD_ESTIMATE: (torch.tensor(-0.5), "")} if model.shift_adaptation is not None else {}


def _name_outputs(model: CalibratedClassifier) -> list[str]:
    return [PREFIX + name for name in list_outputs(model)]


def _make_classifier(model: CalibratedClassifier, example: Images) -> ClassifierGraph:
    """The classifier as a graph: traced where it is a module, as it is where it is ONNX."""
    backend = model.classifier.backend
    wants_features = "features" in model.calibrator.needs
    if isinstance(backend, SessionBackend):
        return _read_classifier(backend, model.classifier.output, wants_features)
    if model.network is None:
        raise ValueError(
            f"{model.classifier.name} must be a torch module or an ONNX file to go into a graph, "
            f"got {type(backend).__name__}: a function cannot be traced"
        )
    names = ["classifier_logits", *(["classifier_features"] if wants_features else [])]
    batch = _make_views(model, [])(example)
    graph = trace_module(model.network, {"classifier_batch": (batch, "stack")}, names)
    return ClassifierGraph(graph, "classifier_batch", *names)


def _read_classifier(
    backend: SessionBackend, output: str | int | None, features: bool
) -> ClassifierGraph:
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
    logits = find_logits_output(names, output, backend.file)
    kept = [logits, *(["features"] if features else [])]
    for value in [value for value in model.graph.output if value.name not in kept]:
        model.graph.output.remove(value)
    prefix = "classifier_"
    model = prefix_dimensions(prefix_names(strip_metadata(model, OPSET), prefix), prefix)
    return ClassifierGraph(model, prefix + backend.input, *(prefix + name for name in kept))
