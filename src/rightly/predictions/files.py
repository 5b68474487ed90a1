"""Load and save predictions: .npz archives, Parquet data sets, arrays. Nothing is unpickled."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rightly.predictions import arrays, npz, parquet
from rightly.predictions.predictions import Predictions
from rightly.predictions.validation import check_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

FilePath = str | os.PathLike[str]


def load(
    path: FilePath,
    *,
    labels: FilePath | None = None,
    probabilities: bool = False,
    views: Sequence[str] | None = None,
) -> tuple[Predictions, Labels | None]:
    """Load predictions and labels from .npz, .npy, .pt, .csv or a folder that `collect` wrote.

    Arrays are logits, or `probabilities`; (n,) and (n, 1) are those of class 1 of two. `labels` is
    a file with the labels of data that have none: .npy, .npz, .pt or text. `views` names the views
    to keep, in this order. Labels are None where neither the data nor such a file has them.
    """
    path = Path(path)
    if path.is_dir():
        if probabilities:
            raise ValueError(f"probabilities=True contradicts {path}, where collect wrote logits")
        predictions, truth = parquet.read(path)
    elif path.suffix in arrays.SUFFIXES:
        predictions, truth = arrays.read(path, probabilities)
    else:
        predictions, truth = npz.read(path, probabilities)
    if views is not None and predictions.view_names != tuple(views):
        predictions = predictions.with_views(views) if views else predictions.without_views()
    if labels is not None:
        if truth is not None:
            raise ValueError(f"labels must be given once: {path} has its own, got {labels} too")
        truth = _read_labels(Path(labels), predictions)
    # What is loaded twice from one place shows the same images.
    source = replace(
        predictions.source,
        path=str(path),
        probabilities=probabilities,
        numbering=str(path.resolve()),
    )
    return predictions._replace(source=source), truth


def save(path: FilePath, predictions: Predictions, labels: AnyArray | None = None) -> None:
    """Save predictions, and labels if given, to a compressed .npz file."""
    npz.write(Path(path), predictions, labels)


def read_image_names(predictions: Predictions) -> list[str] | None:
    """Name of the image behind each row, as collect stored it; None for other predictions."""
    path = predictions.source.path
    if path is None or not Path(path).is_dir():
        return None
    names = parquet.read_image_names(Path(path))
    return [names[number] for number in predictions.images().tolist()]


def _read_labels(path: Path, predictions: Predictions) -> Labels:
    """Labels of a .npy, .npz or .pt file, or of text: one per line, or the column `label`."""
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
            values = arrays.read_label_column(path, predictions.class_names)
        return check_labels(values, predictions)
    except (ValueError, TypeError) as error:
        prefix = "" if str(path) in str(error) else f"{path}: "
        raise type(error)(f"{prefix}{error}") from error
