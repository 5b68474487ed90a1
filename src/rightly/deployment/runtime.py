"""Exported files at work: verdicts about images from one file, and who that file is."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, UInt8

from rightly.classifiers import Preprocessing
from rightly.deployment.metadata import checked_identity
from rightly.deployment.outputs import Verdicts
from rightly.optional import require

KEY = "rightly"  # the entry of a file's metadata that says who it is
PROGRAM_NOTE = "rightly.json"  # the same inside a .pt2 file
Arrays = Float[np.ndarray, "n 3 h w"]


class Deployed(ABC):
    """A calibrated classifier in a file."""

    identity: Mapping[str, Any]

    def __init__(self, identity: Mapping[str, Any]) -> None:
        self.identity = identity
        self.preprocessing = Preprocessing.from_dict(identity["preprocessing"])
        names = identity.get("class_names")
        self.class_names: tuple[str, ...] | None = None if names is None else tuple(names)
        self.view_names: tuple[str, ...] = tuple(identity["views"])
        chosen = identity.get("threshold")
        self.threshold: float | None = None if chosen is None else float(chosen["value"])

    @abstractmethod
    def run(self, images: Arrays) -> dict[str, np.ndarray]:
        """The outputs of the graph, by name, for images in [0, 1]."""

    @final
    def predict(self, images: UInt8[np.ndarray, "n h w 3"]) -> Verdicts:
        """Verdicts about pictures that `preprocessing.pixels` has resized and cut."""
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
        shown = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / 255
        said = self.run(shown)
        return Verdicts(
            classes=said["probabilities"].argmax(-1),
            **{name: said[name] for name in NAMED if name in said},
        )


NAMED = (
    "confidence",
    "raw_confidence",
    "temperature",
    "probabilities",
    "accept",
    "view_classes",
    "view_confidence",
)


@final
class DeployedGraph(Deployed):
    """An ONNX file in onnxruntime."""

    def __init__(self, model: Path | bytes, threads: int = 0) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        name = model if isinstance(model, Path) else "the graph"
        try:
            self.session = runtime.InferenceSession(
                str(model) if isinstance(model, Path) else model,
                options,
                providers=[p for p in PROVIDERS if p in runtime.get_available_providers()],
            )
        except Exception as error:  # onnxruntime's own classes, which have no common base
            raise ValueError(f"{name} is not a whole ONNX file: {error}") from error
        noted = self.session.get_modelmeta().custom_metadata_map.get(KEY)
        super().__init__(checked_identity(_decoded(noted, name), name))
        self.outputs = [output.name for output in self.session.get_outputs()]
        missing = {"probabilities", "confidence", "temperature"} - set(self.outputs)
        if missing:
            raise ValueError(f"{name} must have the outputs {sorted(missing)}: export it again")

    def run(self, images: Arrays) -> dict[str, np.ndarray]:
        values = self.session.run(self.outputs, {"images": images})
        # onnxruntime's integers are of C's type long long, which NumPy keeps apart from int64.
        plain = [value.astype(np.int64) if value.dtype.kind == "i" else value for value in values]
        return dict(zip(self.outputs, plain, strict=True))


@final
class DeployedProgram(Deployed):
    """A .pt2 file of torch.export. torch unpickles parts of such files: open those you trust."""

    def __init__(self, path: Path) -> None:
        noted = {PROGRAM_NOTE: ""}
        try:
            program = torch.export.load(path, extra_files=noted)
        except Exception as error:  # a damaged archive raises nearly anything
            raise ValueError(f"{path} is not a whole program of torch.export: {error}") from error
        super().__init__(checked_identity(_decoded(noted[PROGRAM_NOTE] or None, path), path))
        self.module = program.module()

    def run(self, images: Arrays) -> dict[str, np.ndarray]:
        with torch.no_grad():
            said = self.module(torch.from_numpy(images))
        return {name: value.numpy() for name, value in said.items()}


PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def open_deployed(path: str | os.PathLike[str], threads: int = 0) -> Deployed:
    """The calibrated classifier in a .onnx or .pt2 file that `rightly export` wrote."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    if file.suffix == ".onnx":
        return DeployedGraph(file, threads)
    if file.suffix == ".pt2":
        return DeployedProgram(file)
    raise ValueError(f"a model file must end in .onnx or .pt2, got {path}")


def _decoded(noted: str | None, name: object) -> Any:
    if noted is None:
        return None
    try:
        return json.loads(noted)
    except ValueError as error:
        raise ValueError(f"{name} has a damaged description: {error}") from error
