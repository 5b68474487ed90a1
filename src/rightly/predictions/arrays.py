"""Predictions as people have them: one array (.npy), tensors (.pt) or a table (.csv).

Such files do not say whether they hold logits or probabilities: the caller does.
"""

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rightly.predictions import npz
from rightly.predictions.predictions import Predictions
from rightly.predictions.validation import check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

TORCH = (".pt", ".pth")
SUFFIXES = (".npy", *TORCH, ".csv")
COLUMN = "label"


def read(path: Path, probabilities: bool) -> tuple[Predictions, Labels | None]:
    """Predictions, and labels where a table or named tensors have some."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no predictions file {path}")
    if path.suffix == ".csv":
        return _read_table(path, probabilities)
    values = read_array(path)
    if isinstance(values, dict):
        return npz.make_predictions(path, values, probabilities)
    try:
        return make(values, probabilities), None
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {_add_option(str(error))}") from error


def make(values: AnyArray, probabilities: bool, **others: Any) -> Predictions:
    """Predictions of (n, c) logits or probabilities; (n,) and (n, 1) are of class 1 of two."""
    shape = np.shape(values)
    is_binary = len(shape) == 1 or shape[1:] == (1,)
    if probabilities:
        build = Predictions.from_probabilities
        return (Predictions.from_binary_probabilities if is_binary else build)(values, **others)
    return (Predictions.from_binary if is_binary else Predictions)(values, **others)


def read_array(path: Path) -> Any:
    """The array of a .npy file, or the tensor of a .pt file, or its tensors by name as arrays."""
    if path.suffix not in TORCH:
        return npz.read_npy(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols
            # Only tensors and plain containers: a file that could run code is refused.
            stored = torch.load(path, map_location="cpu", weights_only=True)
            if isinstance(stored, dict):
                stored = _take_arrays(stored)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # torch lets out whatever its readers make of a damaged file
        reason = str(error).partition("\n")[0][:120]
        raise ValueError(
            f"{path} cannot be read as tensors, and nothing else is ever loaded: {reason}"
        ) from error
    if isinstance(stored, torch.Tensor):
        return stored
    if isinstance(stored, dict) and all(isinstance(name, str) for name in stored):
        return stored
    raise ValueError(
        f"{path} must hold a tensor, or tensors by the names that .npz files have, got "
        f"{type(stored).__name__}: write torch.save({{'logits': logits, 'labels': labels}}, path)"
    )


def _take_arrays(stored: dict[Any, Any]) -> dict[Any, Any]:
    """Tensors and lists as arrays; anything else is left out."""
    tensors = {name: value for name, value in stored.items() if isinstance(value, torch.Tensor)}
    lists = {name: np.array(one) for name, one in stored.items() if isinstance(one, list)}
    return {
        name: value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
        for name, value in tensors.items()
    } | lists


def read_label_column(path: Path, class_names: tuple[str, ...] | None) -> np.ndarray:
    """Labels in text: one per line, or the column `label` of a table."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    header = [cell.strip() for cell in rows[0]] if rows else []
    if COLUMN in header:
        place = header.index(COLUMN)
        texts = [row[place].strip() if place < len(row) else "" for row in rows[1:]]
        return _number_labels(texts, class_names)
    if not rows or max(map(len, rows)) > 1:
        raise ValueError(
            f"it must have one label per line, or a column {COLUMN!r}, got {header[:5]}"
        )
    return _number_labels([row[0].strip() for row in rows], class_names)


def _read_table(path: Path, probabilities: bool) -> tuple[Predictions, Labels | None]:
    """A column for each class, under its name, and a column `label` where there are labels."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
        names = tuple(name.strip() for name in header)
        _check_header(names)
        if not rows or {len(row) for row in rows} != {len(names)}:
            raise ValueError(f"it must have rows of {len(names)} cells like its first line")
        texts = None
        if COLUMN in names:
            place = names.index(COLUMN)
            texts = [row.pop(place).strip() for row in rows]
            names = names[:place] + names[place + 1 :]
        is_binary = len(names) == 1
        predictions = make(
            np.array(rows, dtype=np.float64),
            probabilities,
            **({} if is_binary else {"class_names": names}),
        )
        if texts is None:
            return predictions, None
        return predictions, check_labels(
            _number_labels(texts, predictions.class_names), predictions
        )
    except (ValueError, TypeError, csv.Error) as error:
        raise ValueError(f"{path}: {_add_option(str(error))}") from error


def _check_header(names: tuple[str, ...]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"its first line must name every column once, got {list(names[:8])}")
    if {"confidence", "correct"} <= set(names):
        raise ValueError(
            "it holds confidence and correct: measure these by rightly evaluate --pairs"
        )
    try:
        _ = [float(name) for name in names]
    except ValueError:
        return
    raise ValueError(
        f"its first line must name the columns, got the numbers {list(names[:5])}: begin with a "
        f"line of class names, such as cat,dog,{COLUMN}"
    )


def _number_labels(texts: list[str], names: tuple[str, ...] | None) -> np.ndarray:
    """Classes by name if every text is the name of one, else by number."""
    if names and set(texts) <= set(names):
        return np.array([names.index(text) for text in texts])
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        odd = next(text for text in texts if not text.lstrip("-").isdecimal())
        known = f", or {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" if names else ""
        raise ValueError(f"labels must be whole numbers from 0{known}, got {odd[:40]!r}") from None


def _add_option(message: str) -> str:
    """The remedy for files, where that for arrays is named."""
    return message.replace(
        "use Predictions.from_probabilities if these are probabilities",
        "pass probabilities=True if these are probabilities",
    )
