"""`open_model`: a Classifier from a spec such as "timm:resnet50", an nn.Module or a function.

A new source is a function and a line in SPECS or FILES.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from rightly.classifiers.backends import (
    Backend,
    FunctionBackend,
    ModuleBackend,
    pick_device,
    qualify_name,
)
from rightly.classifiers.classifier import Classifier
from rightly.classifiers.exported import ProgramBackend, SessionBackend
from rightly.classifiers.preprocessing import Preprocessing
from rightly.classifiers.sources import (
    MODEL_SPECS,
    LoadedModel,
    load_hugging_face_model,
    load_python_model,
    load_timm_model,
    load_torchvision_model,
)
from rightly.registry import did_you_mean

SPECS: Mapping[str, Callable[[str, bool], LoadedModel]] = {
    "timm": load_timm_model,
    "hf": load_hugging_face_model,
    "torchvision": load_torchvision_model,
    "py": load_python_model,
}
FILES: Mapping[str, Callable[[str, str | torch.device], Backend]] = {
    "onnx": SessionBackend,
    "pt2": ProgramBackend,
}


def open_model(
    model: str | nn.Module | Classifier | Callable[..., Any],
    *,
    device: str | torch.device = "auto",
    preprocessing: Preprocessing | None = None,
    features: bool = False,
    output: str | int | None = None,
) -> Classifier:
    """The classifier that a spec names, or that a module or function from images to logits is.

    Preprocessing comes from the model's own config where it has one; otherwise images reach it in
    [0, 1] unless `preprocessing` says more. `output` chooses the logits among several outputs.
    With `features`, a file that cannot give them is refused at once, others at the first batch.
    """
    if isinstance(model, str):
        classifier = _open_spec(model, device, preprocessing, output)
    else:
        classifier = _open_object(LoadedModel(model), "", device, preprocessing, output)
    if features and not classifier.backend.gives_features:
        raise ValueError(
            f"features of {classifier.name} cannot be had, because its graph has no output called "
            "'features': leave features out, or export the graph with one"
        )
    return classifier


def _open_spec(
    spec: str,
    device: str | torch.device,
    preprocessing: Preprocessing | None,
    output: str | int | None,
) -> Classifier:
    kind, _, rest = spec.partition(":")
    if kind in FILES and rest:
        return Classifier(FILES[kind](rest, device), spec, preprocessing, None, output)
    if kind in SPECS and rest:
        loaded = SPECS[kind](rest, preprocessing is None)
        return _open_object(loaded, spec, device, preprocessing, output)
    hint = "" if kind in (*SPECS, *FILES) else did_you_mean(kind, [*SPECS, *FILES])
    raise ValueError(f"model must be one of {MODEL_SPECS}, got {spec!r}{hint}")


def _open_object(
    loaded: LoadedModel,
    name: str,
    device: str | torch.device,
    preprocessing: Preprocessing | None,
    output: str | int | None,
) -> Classifier:
    model = loaded.model
    backend: Backend
    if isinstance(model, Classifier):
        if device != "auto" or preprocessing is not None or output is not None:
            raise ValueError(
                "device, preprocessing and output must be left out for a Classifier that is "
                "already open: give them when it is opened"
            )
        return model
    if isinstance(model, nn.Module):
        backend = ModuleBackend(model, pick_device(device, model))
    elif callable(model):
        # A function does not say where it wants its images: on the CPU, unless `device` does.
        backend = FunctionBackend(model, pick_device("cpu" if device == "auto" else device))
    else:
        raise TypeError(
            f"model must be {MODEL_SPECS}, an nn.Module or a function from images to logits, "
            f"got {type(model).__name__}"
        )
    wanted = preprocessing or loaded.preprocessing
    return Classifier(backend, name or qualify_name(model), wanted, loaded.class_names, output)
