"""A calibrator as one safetensors file: tensors, and a header that says what they are.

The header lists type and shape of every tensor, and has a SHA-256 over itself and all tensors.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from rightly.calibrators.answers import NotFittedError
from rightly.calibrators.conformal.sets import ConformalSets
from rightly.calibrators.shift_adaptation import InterceptSlope, ShiftAdaptation
from rightly.calibrators.stored_tensors import check_stored, probe
from rightly.checks import (
    Schema,
    are_distinct_names,
    are_names,
    check_table,
    check_version,
    is_count,
    is_table,
    is_text,
    or_null,
)
from rightly.decisions import Decision
from rightly.files import parse_json, write_atomically
from rightly.predictions.validation import check_class_names

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

FORMAT = "rightly-calibrator"
VERSION = 6  # 5 had a threshold and no decision, and other names for adapting
SETS = "sets."  # what the names of their tensors begin with
SUFFIX = ".safetensors"
FITTED_ON = ("sample_count", "class_count", "view_names", "feature_count", "class_names")


def check_name(path: Path) -> None:
    """Refuse a name without the suffix of calibrator files."""
    if path.suffix != SUFFIX:
        raise ValueError(
            f"out must be a calibrator's file, which ends in {SUFFIX}, got {path.name}"
        )


def save(path: Path, calibrator: "Calibrator") -> None:
    """Write a fitted calibrator with all its state; nothing is learned."""
    from rightly.calibrators.methods import CALIBRATORS

    check_name(path)
    if not calibrator.is_fitted:
        raise NotFittedError(
            f"{calibrator.title} is not fitted: call fit(predictions, labels) before save"
        )
    if calibrator.method is None:
        raise ValueError(
            f"{calibrator.title} has no name in the registry to be loaded by: "
            "build it with rightly.calibrator(name)"
        )
    decision, sets = calibrator.decision, calibrator.sets
    table, tensors = (None, {}) if sets is None else sets.to_saved()
    header: dict[str, Any] = {
        "method": calibrator.method,
        "arguments": dict(calibrator.arguments),
        **{name: getattr(calibrator, name) for name in FITTED_ON},
        "decision": None if decision is None else decision.to_dict(),
        "record": dict(calibrator.record),
        "no_shift": calibrator.no_shift,
        "sets": table,
    }
    package = CALIBRATORS.package_of(calibrator.method)
    if package is not None:
        header["package"] = package
    held_out = {SETS + name: tensor for name, tensor in tensors.items()}
    write(path, header, calibrator.stored() | held_out)


def load_calibrator(path: str | os.PathLike[str]) -> "Calibrator":
    """Load a saved calibrator with its decision, prediction sets, shift adaptation and record."""
    from rightly.calibrators.methods import CALIBRATORS, calibrator

    header, tensors = read(Path(path))
    if isinstance(header.get("method"), str) and header["method"] not in CALIBRATORS:
        raise ValueError(f"{path} {_describe_unknown(header)}")
    try:
        built = calibrator(header["method"], **header["arguments"])
        own, held_out = _split_sets(tensors)
        _restore(built, header, own)
        if header["sets"] is not None or held_out:
            built.sets = ConformalSets.from_saved(header["sets"], held_out, header["class_count"])
        if header["decision"] is not None:
            built.decision = Decision.from_dict(header["decision"])
        built.record = header["record"]
    except KeyError as error:
        raise ValueError(f"{path} has a damaged header: {error} is missing") from error
    except (TypeError, ValueError, RuntimeError, IndexError) as error:  # the last two: torch's
        raise ValueError(
            f"{path} holds no calibrator that can be used: {error}; fit it again"
        ) from error
    return built


def _describe_unknown(header: Mapping[str, Any]) -> str:
    """What to do about a method that is not known here; nothing that the file names is imported."""
    package = header.get("package")
    is_name = isinstance(package, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", package)
    remedy = (
        f"it says that it needs the package {package}: install that, if you trust it"
        if is_name
        else "register the method first, with rightly.register or --import PACKAGE.MODULE"
    )
    return f"was saved by the method {header['method']!r}, which is not known here; {remedy}"


def _split_sets(
    tensors: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of a calibrator, and those of its prediction sets by their own names."""
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith(SETS)}
    held_out = {name.removeprefix(SETS): tensors[name] for name in tensors if name not in own}
    return own, held_out


def _restore(
    calibrator: "Calibrator", header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Gives an unfitted calibrator what a saved file holds, or says what is wrong with that."""
    _check_header(calibrator, header)
    if any(path.startswith("shift.") for path in tensors):
        calibrator.shift = ShiftAdaptation()
    if any(path.startswith("correction.") for path in tensors):
        calibrator.correction = InterceptSlope()
    for path, tensor in tensors.items():
        part, _, name = path.rpartition(".")  # a calibrator may be made of others
        try:
            calibrator.get_submodule(part).register_buffer(name, tensor.detach().clone())
        except (AttributeError, KeyError) as error:
            raise ValueError(f"the tensor {path} is left over: this method has none") from error
    for name in FITTED_ON:
        value = header[name]
        setattr(calibrator, name, tuple(value) if isinstance(value, list) else value)
    calibrator.no_shift = header["no_shift"]
    check_stored(calibrator, header["class_count"], header["feature_count"])
    probe(calibrator)


def write(path: Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Writes the tensors, and the header's values as JSON."""
    plain = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    encoded = {"format": FORMAT, "version": str(VERSION)}
    encoded |= {name: json.dumps(value, allow_nan=False) for name, value in header.items()}
    encoded["tensors"] = json.dumps(_list_tensors(plain))
    encoded["sha256"] = _compute_checksum(encoded, plain)
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
    if encoded.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but not a calibrator of rightly")
    check_version(encoded.get("version"), str(VERSION), path, "fit again")
    checksum = encoded.pop("sha256", None)
    if checksum != _compute_checksum(encoded, tensors):
        raise ValueError(
            f"{path} is damaged: its checksum is not that of its contents; copy it again, or fit "
            "again"
        )
    del encoded["format"], encoded["version"]
    try:
        header = {name: parse_json(value) for name, value in encoded.items()}
        if header.pop("tensors", None) != _list_tensors(tensors):
            raise ValueError("the tensors are not those that it lists")
    except ValueError as error:
        raise ValueError(f"{path} has a damaged header: {error}") from error
    return header, tensors


def _list_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Type and shape of every tensor, by name."""
    return {
        name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]
        for name, tensor in sorted(tensors.items())
    }


def _compute_checksum(encoded: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the header's text and the tensors' bytes, in the order of their names."""
    digest = hashlib.sha256(json.dumps(sorted(encoded.items())).encode())
    for _, tensor in sorted(tensors.items()):
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


HEADER: Schema = {
    "class_count": ("a number of classes from 2 on", lambda value: is_count(value, 2)),
    "sample_count": ("a number of samples", is_count),
    "feature_count": ("a number or null", or_null(lambda value: is_count(value, 1))),
    "view_names": ("a list of different names", are_distinct_names),
    "class_names": ("a list of names or null", or_null(are_names)),
    "record": ("a table", is_table),
    "no_shift": ("text or null", or_null(is_text)),
}


def _check_header(calibrator: "Calibrator", header: Mapping[str, Any]) -> None:
    """Refuses values of another type or range than `save` writes."""
    check_table({name: header[name] for name in HEADER}, HEADER)
    check_class_names(header["class_names"], header["class_count"])
    record = header["record"]
    check_table(record, {"classifier": ("a table or null", or_null(is_table))}, "record")
    for need, stored in (("view_logits", "view_names"), ("features", "feature_count")):
        if need in calibrator.needs and not header[stored]:
            raise ValueError(f"{calibrator.title} needs {need}, but was fitted on none")
