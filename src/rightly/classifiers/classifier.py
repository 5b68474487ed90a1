"""A classifier as the rest of the library sees it: images in [0, 1] in, logits out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from rightly.classifiers.backends import Backend, BackendOutput
from rightly.classifiers.preprocessing import Preprocessing
from rightly.tensor_shapes import Features, Logits
from rightly.transforms.image_tensors import Images


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
        logits = _to_tensor(extract_logits(result.output, self.output), self.name)
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
        own = _get_part(result.output, "features")
        if own is not None:
            rows = _to_tensor(own, self.name)
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


def extract_logits(output: Any, wanted: str | int | None) -> Any:
    """The logits inside what a classifier returned: itself, `.logits`, ["logits"] or the first."""
    if wanted is not None:
        part = _get_part(output, wanted)
        if part is None:
            raise ValueError(f"output must name a part of what the model gives, got {wanted!r}")
        return part
    if isinstance(output, (Tensor, np.ndarray)):
        return output
    named = _get_part(output, "logits")
    if named is not None:
        return named
    if isinstance(output, Mapping):
        others = [key for key in output if key != "features"]
        if len(others) == 1:
            return output[others[0]]
        raise ValueError(
            f"the model gives {list(output)}: choose the logits among them with output="
        )
    if isinstance(output, (tuple, list)) and output:
        return output[0]
    return output


def _get_part(output: Any, key: str | int) -> Any:
    if isinstance(output, Mapping):
        return output.get(key)
    if isinstance(key, int):
        return output[key] if isinstance(output, (tuple, list)) and key < len(output) else None
    return None if isinstance(output, (Tensor, np.ndarray)) else getattr(output, key, None)


def _to_tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must return logits: a tensor, an object with .logits, a dictionary with "
            f"'logits' or a tuple that begins with them, got {type(value).__name__}"
        )
    return value
