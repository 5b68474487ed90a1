"""Classifiers in files: ONNX graphs and torch's exported programs."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from rightly.classifiers.backends import Backend, BackendOutput, ModuleBackend, pick_device
from rightly.optional import require
from rightly.transforms.image_tensors import Images

FLOATS = {"tensor(float)": torch.float32, "tensor(float16)": torch.float16}


@final
class SessionBackend(Backend):
    """An ONNX graph in onnxruntime. An output called "features" serves as such."""

    def __init__(self, file: str, device: str | torch.device) -> None:
        runtime = require("onnxruntime", "onnx")
        self.file = _check_file(file)
        self.device = _pick_runtime_device(device, runtime.get_available_providers())
        providers: list[Any] = ["CPUExecutionProvider"]
        if self.device.type == "cuda":
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": self.device.index or 0}))
        try:
            self.session = runtime.InferenceSession(str(self.file), providers=providers)
        except Exception as error:  # onnxruntime's own classes, which have no common base
            raise ValueError(f"{file} cannot be loaded as an ONNX graph: {error}") from error
        self._read_input(file)
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.gives_features = "features" in self.outputs

    def _read_input(self, file: str) -> None:
        inputs = self.session.get_inputs()
        shape = inputs[0].shape
        # A number of channels left open is second: only torch's exporters leave it so.
        first = len(shape) == 4 and (shape[1] == 3 or not isinstance(shape[1], int))
        last = len(shape) == 4 and shape[3] == 3 and shape[1] != 3
        if len(inputs) != 1 or not (first or last) or inputs[0].type not in FLOATS:
            shapes = [(value.name, value.type, value.shape) for value in inputs]
            raise ValueError(
                f"{file} must take one float batch of images, (n, 3, h, w) or (n, h, w, 3), "
                f"got {shapes}"
            )
        self.input, self.dtype = inputs[0].name, FLOATS[inputs[0].type]
        self.channels_last = last
        sides = shape[1:3] if last else shape[2:]
        self.batch_size = shape[0] if isinstance(shape[0], int) else None
        if all(isinstance(side, int) for side in sides):
            self.size = (sides[0], sides[1])

    def prepare(
        self, dtype: torch.dtype | None, channels_last: bool
    ) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, images: Images, features: bool) -> BackendOutput:
        ordered = images.permute(0, 2, 3, 1) if self.channels_last else images
        array = ordered.to(self.dtype).cpu().contiguous().numpy()
        values = self.session.run(self.outputs, {self.input: array})
        named = zip(self.outputs, values, strict=True)
        # Some exporters add outputs that are no tensors, such as a list of dictionaries.
        arrays = {name: value for name, value in named if isinstance(value, np.ndarray)}
        return BackendOutput({k: torch.from_numpy(v).to(self.device) for k, v in arrays.items()})

    def fingerprint(self) -> str:
        """Of the graph, and of the files beside it that hold its weights (model.onnx.data)."""
        return _digest_files([self.file, *sorted(self.file.parent.glob(f"{self.file.name}?*"))])


@final
class ProgramBackend(Backend):
    """A program of torch.export, whose shapes may be fixed.

    torch unpickles parts of such files, so they can run code: open only those you trust.
    """

    def __init__(self, file: str, device: str | torch.device) -> None:
        self.file, self.device = _check_file(file), pick_device(device)
        try:
            program = torch.export.load(self.file)
        except Exception as error:  # a damaged archive raises nearly anything
            raise ValueError(f"{file} cannot be loaded as an exported program: {error}") from error
        names = program.graph_signature.user_inputs
        inputs = [
            node.meta["val"]
            for node in program.graph.nodes
            if node.op == "placeholder" and node.name in names
        ]
        if len(inputs) != 1 or not isinstance(inputs[0], Tensor) or inputs[0].ndim != 4:
            raise ValueError(
                f"{file} must take one batch of images (n, 3, h, w), got {len(inputs)} inputs "
                f"{[tuple(value.shape) for value in inputs if isinstance(value, Tensor)]}"
            )
        n, _, *sides = inputs[0].shape
        self.batch_size = n if isinstance(n, int) else None
        if all(isinstance(side, int) for side in sides):
            self.size = (sides[0], sides[1])
        self.dtype = inputs[0].dtype
        self.module = ModuleBackend(program.module(), self.device, has_modes=False)

    def prepare(
        self, dtype: torch.dtype | None, channels_last: bool
    ) -> AbstractContextManager[None]:
        # Types and layouts are fixed in the program.
        return self.module.prepare(None, False)

    def run(self, images: Images, features: bool) -> BackendOutput:
        return self.module.run(images.to(self.dtype), False)

    def fingerprint(self) -> str:
        return _digest_files([self.file])


def _pick_runtime_device(device: str | torch.device, providers: list[str]) -> torch.device:
    picked = pick_device(device)
    if picked.type == "cpu" or (picked.type == "cuda" and "CUDAExecutionProvider" in providers):
        return picked
    if device == "auto":
        return torch.device("cpu")
    raise ValueError(
        f"device must be one that onnxruntime can use here, got {device!r}: use device='cpu', or "
        "install onnxruntime-gpu"
    )


def _check_file(file: str) -> Path:
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {file}")
    return path


def _digest_files(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
