"""A calibrator as one safetensors file: tensors, and a header that says what they are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
from torch import Tensor

from rightly.atomic_write import write_atomically

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

FORMAT = "rightly-calibrator"
VERSION = 2
FITTED_ON = ("sample_count", "class_count", "view_names", "feature_count", "class_names")


def save(
    path: Path,
    calibrator: "Calibrator",
    threshold: float | None = None,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Writes a fitted calibrator, and what goes with it."""
    from rightly.calibrators.base import NotFittedError

    if not calibrator.is_fitted:
        raise NotFittedError(
            f"{calibrator.title} is not fitted: call fit(predictions, labels) before save"
        )
    if calibrator.method is None:
        raise ValueError(
            f"{calibrator.title} has no name in the registry to be loaded by: "
            "build it with rightly.calibrator(name)"
        )
    header: dict[str, Any] = {
        "method": calibrator.method,
        "arguments": dict(calibrator.arguments),
        **{name: getattr(calibrator, name) for name in FITTED_ON},
        "threshold": threshold,
        "record": dict(record or {}),
    }
    write(path, header, calibrator.stored())


def restore(
    calibrator: "Calibrator", header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Gives an unfitted calibrator what a saved file holds."""
    for path, tensor in tensors.items():
        part, _, name = path.rpartition(".")  # a calibrator may be made of others
        calibrator.get_submodule(part).register_buffer(name, tensor.detach().clone())
    for name in FITTED_ON:
        value = header[name]
        setattr(calibrator, name, tuple(value) if isinstance(value, list) else value)


def write(path: Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Writes the tensors, and the header's values as JSON."""
    plain = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    encoded = {"format": FORMAT, "version": str(VERSION)}
    encoded |= {name: json.dumps(value) for name, value in header.items()}
    # save_file would make the file unreadable for everybody else, whatever the umask says.
    write_atomically(path, lambda part: part.write_bytes(safetensors.torch.save(plain, encoded)))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and tensors of a calibrator file; anything else is refused with the reason."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no calibrator file {path}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            encoded = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    if encoded.pop("format", None) != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but not a calibrator of rightly")
    version = encoded.pop("version", None)
    if version != str(VERSION):
        raise ValueError(
            f"{path} has format version {version}, but this rightly reads {VERSION}: "
            "use the rightly that wrote it, or fit again"
        )
    try:
        return {name: json.loads(value) for name, value in encoded.items()}, tensors
    except ValueError as error:
        raise ValueError(f"{path} has a damaged header: {error}") from error
