"""Exported files at work: images in, outputs out, without torch where the file is ONNX."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, UInt8

from rightly.classifiers.preprocessing import Preprocessing
from rightly.deployment.conformance import (
    INPUT,
    SHIFT_ESTIMATE,
    check_graph,
    check_outputs,
    check_shift_estimate,
)
from rightly.deployment.metadata import ONNX_KEY, parse_metadata, read_decision
from rightly.deployment.outputs import OUTPUT_NAMES, Outputs, read_outputs
from rightly.optional import require

PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")  # the first that there is
SUFFIXES = (".onnx", ".pt2")
ONNX_KINDS = {"tensor(float)": "floats", "tensor(int64)": "integers", "tensor(bool)": "booleans"}


class ExportedModel(ABC):
    """A calibrated classifier in a file."""

    metadata: Mapping[str, Any]
    source: object = "the model"  # its file, where that is known

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.metadata = metadata
        self.preprocessing = Preprocessing.from_dict(metadata["preprocessing"])
        names = metadata.get("class_names")
        self.class_names: tuple[str, ...] | None = None if names is None else tuple(names)
        self.view_names: tuple[str, ...] = tuple(metadata["views"])
        self.decision = read_decision(metadata)

    @property
    def threshold(self) -> float | None:
        return None if self.decision is None else self.decision.threshold

    @abstractmethod
    def run(
        self, images: Float[np.ndarray, "n 3 h w"], shift_estimate: float | None = None
    ) -> dict[str, np.ndarray]:
        """The file's outputs, by name, for images in [0, 1]."""

    @final
    def predict(
        self, images: UInt8[np.ndarray, "n h w 3"], shift_estimate: float | None = None
    ) -> Outputs:
        """Outputs for images that `preprocessing.pixels` has resized and cut.

        Adapted to `shift_estimate` (docs/deploy.md), by default to the calibrator's own.
        """
        if shift_estimate is not None:
            check_shift_estimate(shift_estimate, self.metadata.get("shift_adaptation") is not None)
        if images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8:
            raise ValueError(
                "images must be bytes of shape (n, h, w, 3), got "
                f"{images.dtype} of shape {images.shape}"
            )
        if not len(images):
            raise ValueError("images must hold at least one image, got an empty batch")
        size = self.preprocessing.size
        if size is not None and images.shape[1:3] != size:
            raise ValueError(f"images must have the size {size}, got {images.shape[1:3]}")
        scaled = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / 255
        try:
            values = self.run(scaled, shift_estimate)
        except Exception as error:  # of a runtime, whose classes have no common base
            raise ValueError(f"{self.source} cannot be run: {error}") from error
        outputs = read_outputs(values, self.source)
        check_outputs(outputs, len(images), self.metadata, self.source)
        return outputs


@final
class OnnxModel(ExportedModel):
    """An ONNX file in onnxruntime."""

    def __init__(self, model: Path | bytes, threads: int = 0) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors: it warns of every input that has a default
        source = model if isinstance(model, Path) else "the graph"
        try:
            self.session = runtime.InferenceSession(
                str(model) if isinstance(model, Path) else model,
                options,
                providers=[p for p in PROVIDERS if p in runtime.get_available_providers()],
            )
        except Exception as error:  # onnxruntime's own classes, which have no common base
            raise ValueError(f"{source} is not a whole ONNX file: {error}") from error
        try:
            text = self.session.get_modelmeta().custom_metadata_map.get(ONNX_KEY)
            inputs, outputs = (
                {
                    tensor.name: (ONNX_KINDS.get(tensor.type, tensor.type), tensor.shape)
                    for tensor in tensors
                }
                for tensors in (
                    [*self.session.get_inputs(), *self.session.get_overridable_initializers()],
                    self.session.get_outputs(),
                )
            )
        except UnicodeDecodeError as error:
            raise ValueError(f"{source} has damaged metadata: {error}") from error
        super().__init__(parse_metadata(text, source))
        self.source = source
        check_graph(inputs, outputs, self.metadata, source)
        self._names = [name for name in OUTPUT_NAMES if name in outputs]

    def run(
        self, images: Float[np.ndarray, "n 3 h w"], shift_estimate: float | None = None
    ) -> dict[str, np.ndarray]:
        feed = {INPUT: images}
        if shift_estimate is not None:
            feed[SHIFT_ESTIMATE] = np.array(shift_estimate, np.float32)
        values = self.session.run(self._names, feed)
        return dict(zip(self._names, values, strict=True))


def open_exported(path: str | os.PathLike[str], threads: int = 0) -> ExportedModel:
    """The calibrated classifier in a .onnx or .pt2 file that `rightly export` wrote.

    torch unpickles parts of .pt2 files: open those you trust.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    if file.suffix == ".onnx":
        return OnnxModel(file, threads)
    if file.suffix == ".pt2":
        from rightly.deployment.torch_runtime import TorchProgram

        return TorchProgram(file)
    raise ValueError(f"a model file must end in {' or '.join(SUFFIXES)}, got {path}")
