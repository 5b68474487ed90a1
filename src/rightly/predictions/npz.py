"""Predictions as NumPy archives."""

import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from rightly.atomic_write import write_atomically
from rightly.predictions.predictions import Predictions, check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

VERSION = 1
ARRAYS = ("logits", "view_logits", "features", "shift", "image")
NAMES = ("view_names", "class_names", "shift_names")


def read(path: Path) -> tuple[Predictions, Labels | None]:
    """Predictions and labels of one archive, read without ever unpickling anything."""
    arrays = _read_npz(path)
    _check_version(path, arrays.pop("format_version", None))
    unknown = sorted(set(arrays) - {*ARRAYS, *NAMES, "labels"})
    if "logits" not in arrays:
        hint = ""
        if "probabilities" in arrays or "probs" in arrays:
            hint = ": build them with Predictions.from_probabilities and write them with save"
        raise ValueError(f"{path} must hold logits, but it holds {sorted(arrays)}{hint}")
    if unknown:
        warnings.warn(f"{path} holds keys that are not read: {unknown}", UserWarning, stacklevel=3)
    options: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    options |= {name: arrays[name].tolist() for name in NAMES if name in arrays}
    try:
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
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no predictions file {path}")
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is not a whole .npz file: it is truncated, or was written by something else "
            "than numpy.savez"
        )
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as stored:
            for name in stored.files:
                arrays[name] = stored[name]
                if not isinstance(arrays[name], np.ndarray):
                    raise ValueError(f"{name} is not an array")
    except ValueError as error:
        if "pickle" in str(error):
            raise ValueError(
                f"{path} holds pickled Python objects, which could run code and are never "
                "loaded: save plain arrays"
            ) from error
        raise ValueError(f"{path} cannot be read as arrays: {error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return arrays
