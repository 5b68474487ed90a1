"""Predictions as NumPy archives."""

import math
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from rightly.files import write_atomically
from rightly.predictions.predictions import Predictions
from rightly.predictions.validation import check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

VERSION = 1
MAGIC = b"\x93NUMPY"  # of a single array, a .npy file
BUFFER = 2**20  # bytes read at a time
ENCRYPTED = 0x1  # a flag of members
# How much larger a byte may become; DEFLATE makes at most 1,032 of one.
GROWTH = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
# What NumPy and zipfile raise on members that are no arrays.
UNREADABLE = (ValueError, RecursionError, SyntaxError, NotImplementedError, tokenize.TokenError)
DAMAGED = (
    *(MemoryError, zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, RuntimeError),
)
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
ARRAYS = ("logits", "view_logits", "features", "shift", "image", "image_hash")
TEXT = "fingerprint"
NAMES = ("view_names", "class_names", "shift_names")


def read(path: Path, probabilities: bool = False) -> tuple[Predictions, Labels | None]:
    """Predictions and labels of one archive, read without ever unpickling anything."""
    return make_predictions(path, read_arrays(path), probabilities)


def make_predictions(
    path: Path, arrays: dict[str, np.ndarray], probabilities: bool = False
) -> tuple[Predictions, Labels | None]:
    """Predictions and labels of arrays by the names of the format; these say what they hold."""
    _check_version(path, arrays.pop("format_version", None))
    source = "probabilities" if "logits" not in arrays else "logits"
    unknown = sorted(set(arrays) - {*ARRAYS, *NAMES, TEXT, "labels", source})
    if source not in arrays:
        hint = ": name the array probabilities" if "probs" in arrays else ""
        raise ValueError(
            f"{path} must hold logits or probabilities, but it holds {sorted(arrays)}{hint}"
        )
    if probabilities and source == "logits":
        raise ValueError(
            f"probabilities=True contradicts {path}, which names its array logits: leave it out, "
            "or name the array probabilities"
        )
    if source == "probabilities" and "view_logits" in arrays:
        raise ValueError(f"{path} must not hold both probabilities and view_logits")
    if unknown:
        warnings.warn(f"{path} holds keys that are not read: {unknown}", UserWarning, stacklevel=3)
    options: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    options |= {name: arrays[name].tolist() for name in NAMES if name in arrays}
    try:
        if TEXT in arrays:
            if arrays[TEXT].shape or arrays[TEXT].dtype.kind != "U":
                raise ValueError(f"{TEXT} must be one text, got {arrays[TEXT].dtype}")
            options[TEXT] = str(arrays[TEXT])
        if source == "probabilities":
            predictions = Predictions.from_probabilities(arrays[source], **options)
        else:
            predictions = Predictions(**options)
        labels = arrays.get("labels")
        return predictions, None if labels is None else check_labels(labels, predictions)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from error


def write(path: Path, predictions: Predictions, labels: AnyArray | None) -> None:
    """Writes predictions, and labels where there are any, to a compressed archive."""
    arrays: dict[str, Any] = {"format_version": np.array(VERSION)}
    for name in ARRAYS:
        value = getattr(predictions, name)
        if value is not None:
            arrays[name] = value.cpu().numpy()
    for name in NAMES:
        if getattr(predictions, name):
            arrays[name] = np.array(getattr(predictions, name))
    if predictions.fingerprint is not None:
        arrays[TEXT] = np.array(predictions.fingerprint)
    if labels is not None:
        arrays["labels"] = check_labels(labels, predictions).cpu().numpy()
    write_atomically(path, lambda part: _write_npz(part, arrays))


def _check_version(path: Path, version: np.ndarray | None) -> None:
    """Refuses what a later `save` wrote; an archive without a version was made by hand."""
    if version is not None and (version.shape or version != VERSION):
        raise ValueError(
            f"{path} has format version {version}, this rightly reads {VERSION}: "
            "update rightly, or save the predictions again with this one"
        )


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive by name."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no predictions file {path}")
    with path.open("rb") as file:
        is_array = file.read(len(MAGIC)) == MAGIC
    if is_array:
        raise ValueError(
            f"{path} is one array as numpy.save writes it, not an archive of named arrays: call it "
            ".npy, or write numpy.savez('cal.npz', logits=logits, labels=labels)"
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is not a whole .npz file: it is truncated, or was written by something else "
            "than numpy.savez"
        )
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, member in _list_members(archive, path.stat().st_size).items():
                with archive.open(member) as file:
                    arrays[name] = _read_array(file, member.filename, member.file_size)
    except (*UNREADABLE, *DAMAGED) as error:
        raise _describe(path, error) from error
    return arrays


def read_npy(path: Path) -> np.ndarray:
    """The array of a file that numpy.save wrote, never unpickled."""
    try:
        with path.open("rb") as file:
            return _read_array(file, path.name, path.stat().st_size)
    except (*UNREADABLE, *DAMAGED) as error:
        raise _describe(path, error) from error


def _describe(path: Path, error: Exception) -> ValueError:
    """What is wrong with a file that NumPy or zipfile cannot read."""
    if isinstance(error, MemoryError):
        return ValueError(f"{path} holds arrays that do not fit into memory")
    if not isinstance(error, UNREADABLE):
        return ValueError(f"{path} is damaged: {error}")
    if "pickle" in str(error):
        return ValueError(
            f"{path} holds pickled Python objects, which could run code and are never loaded: "
            "save plain arrays"
        )
    return ValueError(f"{path} cannot be read as arrays: {error}")


def _list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The archive's members by the names of their arrays, none larger than its bytes can make."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise ValueError(f"{name} is there twice: save it again with rightly.save")
        if member.flag_bits & ENCRYPTED:
            raise ValueError(f"{name} is encrypted: decrypt the archive first")
        growth = GROWTH.get(member.compress_type)
        if growth is None:
            raise ValueError(
                f"{name} is compressed by method {member.compress_type}, which numpy never uses: "
                "save it again with rightly.save"
            )
        if member.compress_size > size or member.file_size > growth * (member.compress_size + 16):
            raise ValueError(
                f"{name} claims {member.file_size:,} bytes, more than {member.compress_size:,} "
                "compressed ones can hold"
            )
        members[name] = member
    return members


def _read_array(file: Any, name: str, size: int) -> np.ndarray:
    """An array whose header claims no more than the size of what it is in."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name} has version {version} of numpy's format")
    shape, is_fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"{name} must be unpickled")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size:
        raise ValueError(f"{name} claims the shape {shape}, {claimed:,} bytes, but holds {size:,}")
    if not claimed:
        return np.empty(shape, dtype)
    content = np.empty(claimed, np.uint8)
    for start in range(0, claimed, BUFFER):  # at once would take twice the memory
        chunk = file.read(min(BUFFER, claimed - start))
        content[start : start + len(chunk)] = np.frombuffer(chunk, np.uint8)
        if len(chunk) != min(BUFFER, claimed - start):
            raise EOFError(f"{name} ends too early")
    if file.read(1):
        raise ValueError(f"{name} holds more than its {claimed:,} bytes")
    flat = content.view(dtype)
    return flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)
