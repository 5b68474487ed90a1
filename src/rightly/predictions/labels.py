"""True classes: checked against predictions, and read from files of their own."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rightly.predictions.masking import check_possible
from rightly.predictions.validation import check_integers
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

if TYPE_CHECKING:
    from rightly.predictions.predictions import Predictions

COLUMN = "label"


def check_labels(labels: AnyArray, predictions: "Predictions") -> Labels:
    """True classes as int64 on the device of the predictions, or an error that says what is off."""
    tensor = check_integers("labels", "the true class of each sample", labels, predictions.logits)
    low, high, c = int(tensor.min()), int(tensor.max()), predictions.class_count
    if low < 0 or high >= c:
        raise ValueError(
            f"labels must lie in 0..{c - 1} for {c} classes, got {low}..{high}: "
            "do the labels count from 1, or belong to another class list?"
        )
    check_possible(tensor, predictions.logits)
    return tensor


def read_label_file(path: Path, predictions: "Predictions") -> Labels:
    """The labels of a .npy, .npz or .pt file, or of text: one a line, or the column `label`."""
    from rightly.predictions import arrays, npz

    if not path.is_file():
        raise FileNotFoundError(f"there is no file of labels {path}")
    try:
        if path.suffix == ".npz":
            stored = npz.read_arrays(path)
            if "labels" not in stored:
                raise ValueError(f"it must hold labels, but it holds {sorted(stored)}")
            values: AnyArray = stored["labels"]
        elif path.suffix in (".npy", *arrays.TORCH):
            values = arrays.read_array(path)
        else:
            values = number_labels(_read_column(path), predictions.class_names)
        return check_labels(values, predictions)
    except (ValueError, TypeError) as error:
        prefix = "" if str(path) in str(error) else f"{path}: "
        raise type(error)(f"{prefix}{error}") from error


def number_labels(texts: list[str], names: tuple[str, ...] | None) -> np.ndarray:
    """Classes by their names if all are names of classes, else by their numbers."""
    if names and set(texts) <= set(names):
        return np.array([names.index(text) for text in texts])
    try:
        return np.array([int(text) for text in texts])
    except ValueError:
        odd = next(text for text in texts if not text.lstrip("-").isdecimal())
        known = f", or {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" if names else ""
        raise ValueError(f"labels must be whole numbers from 0{known}, got {odd[:40]!r}") from None


def _read_column(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    header = [cell.strip() for cell in rows[0]] if rows else []
    if COLUMN in header:
        place = header.index(COLUMN)
        return [row[place].strip() if place < len(row) else "" for row in rows[1:]]
    if not rows or max(map(len, rows)) > 1:
        raise ValueError(f"it must have one label a line, or a column {COLUMN!r}, got {header[:5]}")
    return [row[0].strip() for row in rows]
