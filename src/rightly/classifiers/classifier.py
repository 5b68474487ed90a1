"""A classifier as the rest of the library sees it: images in [0, 1] in, logits out.

`open_model` makes one from a spec such as "timm:resnet50", an nn.Module or a function. A new source
is a function and a line in SPECS or FILES.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor, nn

from rightly.classifiers.backends import (
    Backend,
    BackendOutput,
    FunctionBackend,
    ModuleBackend,
    extract_logits,
    get_part,
    pick_device,
    qualify_name,
    to_tensor,
)
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
from rightly.registry import unknown_name
from rightly.tensor_shapes import Features, Logits
from rightly.transforms.image_tensors import Images

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


@final
class Classifier:
    """Any classifier behind one interface; `forward` runs inside `with classifier.prepare():`."""

    def __init__(
        self,
        backend: Backend,
        name: str,
        preprocessing: Preprocessing | None = None,
        class_names: tuple[str, ...] | None = None,
        output: str | int | None = None,
    ) -> None:
        self.backend, self.name, self.class_names = backend, name, class_names
        self.preprocessing = preprocessing or Preprocessing(size=backend.size)
        self.output = output
        self.class_count = None if class_names is None else len(class_names)
        self._ready = False
        size = self.preprocessing.size
        if backend.size and size != backend.size:
            raise ValueError(
                f"preprocessing must give images of size {backend.size}, which {name} was made "
                f"for, got size {size}"
            )

    @property
    def device(self) -> torch.device:
        return self.backend.device

    @cached_property
    def fingerprint(self) -> str:
        """Tells this classifier from others: a digest of its weights or of its file."""
        return self.backend.fingerprint()

    @contextmanager
    def prepare(
        self, dtype: torch.dtype | None = None, channels_last: bool = False
    ) -> Iterator["Classifier"]:
        """On the device and in evaluation mode inside; mode, device and gradients restored after.

        `dtype` (say torch.bfloat16) and `channels_last` are for speed, and for modules only.
        """
        with self.backend.prepare(dtype, channels_last):
            self._ready = True
            try:
                yield self
            finally:
                self._ready = False

    def forward(self, images: Images, features: bool = False) -> tuple[Logits, Features | None]:
        """Logits in float32, and on request the penultimate features, of images in [0, 1]."""
        if not self._ready:
            raise RuntimeError(
                "forward must run inside `with classifier.prepare():`, which restores the model"
            )
        inputs = self.preprocessing.normalise(images.to(self.device, non_blocking=True))
        size = self.backend.batch_size
        if size is None:
            return self._check_output(self.backend.run(inputs, features), len(inputs), features)
        parts = [self._run_fixed_batch(part, size, features) for part in inputs.split(size)]
        logits = torch.cat([part for part, _ in parts])
        rows = [part for _, part in parts if part is not None]
        return logits, torch.cat(rows) if rows else None

    def _run_fixed_batch(
        self, images: Images, size: int, features: bool
    ) -> tuple[Logits, Features | None]:
        n = len(images)
        filled = torch.cat([images, images[-1:].expand(size - n, -1, -1, -1)])
        logits, rows = self._check_output(self.backend.run(filled, features), size, features)
        return logits[:n], None if rows is None else rows[:n]

    def _check_output(
        self, result: BackendOutput, n: int, features: bool
    ) -> tuple[Logits, Features | None]:
        logits = to_tensor(extract_logits(result.output, self.output), self.name)
        if logits.ndim != 2 or len(logits) != n or not logits.is_floating_point():
            raise ValueError(
                f"{self.name} must give float logits of shape ({n}, classes) for {n} images, got "
                f"{logits.dtype} of shape {tuple(logits.shape)}: choose the right part of its "
                "output with output="
            )
        if self.class_count is None:
            self.class_count = logits.shape[1]
        if logits.shape[1] != self.class_count:
            source = "class names say" if self.class_names else "earlier batches had"
            raise ValueError(
                f"{self.name} must give the same number of classes in every batch: "
                f"{source} {self.class_count}, got {logits.shape[1]}"
            )
        return logits.float(), self._extract_features(result, n).float() if features else None

    def _extract_features(self, result: BackendOutput, n: int) -> Tensor:
        own = get_part(result.output, "features")
        if own is not None:
            rows = to_tensor(own, self.name)
        elif result.features is None or result.head_width != self.class_count:
            reason = (
                "no nn.Linear ran in it"
                if result.head_width is None
                else f"the last nn.Linear that ran gives {result.head_width} values"
            )
            raise ValueError(
                f"features of {self.name} must be the input of an nn.Linear that gives its "
                f"{self.class_count} logits, but {reason}: leave features out, or let the model "
                "return a dictionary of logits and features"
            )
        else:
            rows = result.features
        if len(rows) != n:
            raise ValueError(f"features must have {n} rows like logits, got {tuple(rows.shape)}")
        return rows.flatten(1)


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
    kinds = (*SPECS, *FILES)
    meant = [] if kind in kinds else get_close_matches(kind, kinds, n=1)
    raise unknown_name("model", spec, [MODEL_SPECS], [f"{one}:{rest}" for one in meant])


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
