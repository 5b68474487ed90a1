"""What runs a classifier: torch's modules and plain functions."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from rightly.transforms.image_tensors import Images


class BackendOutput(NamedTuple):
    """What a classifier returned; on request the input of its last linear layer, and its width."""

    output: Any
    features: Tensor | None = None
    head_width: int | None = None


class Backend(ABC):
    """Runs a classifier on normalised images, on its device."""

    device: torch.device
    batch_size: int | None = None  # the only one it can take, where it is fixed
    size: tuple[int, int] | None = None  # height and width, where they are fixed
    gives_features: bool = True  # False where it certainly cannot

    @abstractmethod
    def prepare(
        self, dtype: torch.dtype | None, channels_last: bool
    ) -> AbstractContextManager[None]:
        """Ready to run inside the context, as before outside of it."""

    @abstractmethod
    def run(self, images: Images, features: bool) -> BackendOutput:
        """Runs one batch."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Tells this classifier from others by its weights."""


@final
class ModuleBackend(Backend):
    """A torch module: in evaluation mode on the device while prepared, untouched afterwards."""

    def __init__(self, module: nn.Module, device: torch.device, has_modes: bool = True) -> None:
        self.module, self.device = module, device
        self.has_modes = has_modes  # exported programs have none, and refuse to be asked
        self.channels_last = False

    @contextmanager
    def prepare(self, dtype: torch.dtype | None, channels_last: bool) -> Iterator[None]:
        with _restore_afterwards(self.module):
            if self.has_modes:
                self.module.eval()
            self.module.to(device=self.device, dtype=dtype)
            if channels_last:
                self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.channels_last = channels_last
            yield

    def run(self, images: Images, features: bool) -> BackendOutput:
        first = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        layout = torch.channels_last if self.channels_last else torch.preserve_format
        images = images.to(dtype=None if first is None else first.dtype, memory_format=layout)
        # Not inference_mode: what a module caches in it could never be trained with again.
        with torch.no_grad():
            if not features:
                return BackendOutput(self.module(images))
            with record_last_linear(self.module) as record:
                output = self.module(images)
        return BackendOutput(output, *record)

    def fingerprint(self) -> str:
        return _digest_weights(self.module)


@final
class FunctionBackend(Backend):
    """Any function from images to logits, on whatever device it uses."""

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function, self.device = function, device

    def prepare(
        self, dtype: torch.dtype | None, channels_last: bool
    ) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, images: Images, features: bool) -> BackendOutput:
        with torch.no_grad():
            return BackendOutput(self.function(images))

    def fingerprint(self) -> str:
        """By name, and by the weights of the modules that the function holds."""
        owners = [getattr(self.function, "__self__", None)]
        owners += [cell.cell_contents for cell in getattr(self.function, "__closure__", None) or ()]
        digest = hashlib.sha256(qualify_name(self.function).encode())
        for module in owners:
            if isinstance(module, nn.Module):
                digest.update(_digest_weights(module).encode())
        return digest.hexdigest()


def qualify_name(function: Callable[..., Any]) -> str:
    """Module and name of a function, or of the type of a callable object."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def pick_device(device: str | torch.device, module: nn.Module | None = None) -> torch.device:
    """The device asked for; "auto" is where the module already is, else the fastest there is."""
    if device != "auto":
        requested = torch.device(device)
        if requested.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device must be one that is here, got {device!r}: torch sees no GPU")
        return requested
    first = None if module is None else next(module.parameters(), None)
    if first is not None and first.device.type not in ("cpu", "meta"):
        return first.device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@contextmanager
def _restore_afterwards(module: nn.Module) -> Iterator[None]:
    """Whatever happens inside, modes, devices, types and gradients are afterwards as before.

    The very tensors are put back, not copies of them: nothing is rounded, and an optimiser, tied
    weights or shared memory still refer to what they did.
    """
    parts = list(module.modules())
    modes = [part.training for part in parts]
    tables = [(dict(part._parameters), dict(part._buffers)) for part in parts]
    weights = [(weight, weight.data, weight.grad) for weight in module.parameters()]
    try:
        for weight, _, _ in weights:
            weight.grad = None  # of no use inside, and moving would copy it
        yield
    finally:
        for weight, values, _ in weights:
            weight.data = values
        for part, mode, (parameters, buffers) in zip(parts, modes, tables, strict=True):
            part.training = mode
            part._parameters.update(parameters)
            part._buffers.update(buffers)
        for weight, _, gradient in weights:
            weight.grad = gradient


@contextmanager
def record_last_linear(module: nn.Module) -> Iterator[list[Any]]:
    """Fills a list with the input of the last linear layer that ran, and that layer's width."""
    record: list[Any] = []

    def keep(layer: nn.Linear, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        record[:] = [positional[0] if positional else named["input"], layer.out_features]

    hooks = [
        part.register_forward_pre_hook(keep, with_kwargs=True)
        for part in module.modules()
        if isinstance(part, nn.Linear)
    ]
    try:
        yield record
    finally:
        for hook in hooks:
            hook.remove()


def _digest_weights(module: nn.Module) -> str:
    digest = hashlib.sha256()
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        values = tensor.detach().cpu().contiguous().flatten()
        digest.update(values.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def extract_logits(output: Any, wanted: str | int | None) -> Any:
    """The logits inside what a classifier returned: itself, `.logits`, ["logits"] or the first."""
    if wanted is not None:
        part = get_part(output, wanted)
        if part is None:
            raise ValueError(f"output must name a part of what the model gives, got {wanted!r}")
        return part
    if isinstance(output, (Tensor, np.ndarray)):
        return output
    named = get_part(output, "logits")
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


def get_part(output: Any, key: str | int) -> Any:
    if isinstance(output, Mapping):
        return output.get(key)
    if isinstance(key, int):
        return output[key] if isinstance(output, (tuple, list)) and key < len(output) else None
    return None if isinstance(output, (Tensor, np.ndarray)) else getattr(output, key, None)


def to_tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must return logits: a tensor, an object with .logits, a dictionary with "
            f"'logits' or a tuple that begins with them, got {type(value).__name__}"
        )
    return value
