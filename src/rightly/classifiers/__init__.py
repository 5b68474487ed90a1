"""Classifiers from anywhere: libraries, files, or the user's own code.

`open_model` turns a spec such as "timm:resnet50", an nn.Module or a function into a Classifier.
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
    name_of,
    pick_device,
)
from rightly.classifiers.classifier import Classifier as Classifier
from rightly.classifiers.exported import ProgramBackend, SessionBackend
from rightly.classifiers.preprocessing import Preprocessing as Preprocessing
from rightly.classifiers.sources import (
    Opened,
    hugging_face_model,
    own_model,
    timm_model,
    torchvision_model,
)

SPECS: Mapping[str, Callable[[str, bool], Opened]] = {
    "timm": timm_model,
    "hf": hugging_face_model,
    "torchvision": torchvision_model,
    "py": own_model,
}
FILES: Mapping[str, Callable[[str, str | torch.device], Backend]] = {
    "onnx": SessionBackend,
    "pt2": ProgramBackend,
}
KNOWN = (
    "timm:NAME, hf:NAME_OR_DIR, torchvision:NAME, onnx:FILE, pt2:FILE, py:package.module:factory"
)


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
        classifier = _of_spec(model, device, preprocessing, output)
    else:
        classifier = _of_object(Opened(model), "", device, preprocessing, output)
    if features and not classifier.backend.gives_features:
        raise ValueError(
            f"features of {classifier.name} cannot be had, because its graph has no output called "
            "'features': leave features out, or export the graph with one"
        )
    return classifier


def _of_spec(
    spec: str,
    device: str | torch.device,
    preprocessing: Preprocessing | None,
    output: str | int | None,
) -> Classifier:
    kind, _, rest = spec.partition(":")
    if kind in FILES and rest:
        return Classifier(FILES[kind](rest, device), spec, preprocessing, None, output)
    if kind in SPECS and rest:
        opened = SPECS[kind](rest, preprocessing is None)
        return _of_object(opened, spec, device, preprocessing, output)
    raise ValueError(f"model must be one of {KNOWN}, got {spec!r}")


def _of_object(
    opened: Opened,
    name: str,
    device: str | torch.device,
    preprocessing: Preprocessing | None,
    output: str | int | None,
) -> Classifier:
    model = opened.model
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
        # A function says nowhere where it wants its images: on the CPU, unless told.
        backend = FunctionBackend(model, pick_device("cpu" if device == "auto" else device))
    else:
        raise TypeError(
            f"model must be {KNOWN}, an nn.Module or a function from images to logits, "
            f"got {type(model).__name__}"
        )
    chosen = preprocessing or opened.preprocessing
    return Classifier(backend, name or name_of(model), chosen, opened.class_names, output)
