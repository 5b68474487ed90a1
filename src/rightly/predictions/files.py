"""Predictions in files: .npz archives, Parquet data sets, plain arrays. Nothing is unpickled."""

import os
from dataclasses import replace
from pathlib import Path

from rightly.predictions import arrays, npz, parquet
from rightly.predictions.labels import read_label_file
from rightly.predictions.predictions import Predictions
from rightly.predictions.reading import current_reading
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels


def load(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    probabilities: bool | None = None,
) -> tuple[Predictions, Labels | None]:
    """Predictions and labels of a .npz, .npy, .pt or .csv file, or a folder that `collect` wrote.

    Arrays are logits unless `probabilities` is true; (n,) and (n, 1) are those of class 1 of two.
    `labels` is a file with labels, for data that have none; without any they are None.
    """
    path, said = Path(path), current_reading()
    as_probabilities = said.probabilities if probabilities is None else probabilities
    if path.is_dir():
        if as_probabilities:
            raise ValueError(f"probabilities=True contradicts {path}, where collect wrote logits")
        predictions, truth = parquet.read(path)
    elif path.suffix in arrays.SUFFIXES:
        predictions, truth = arrays.read(path, as_probabilities)
    else:
        predictions, truth = npz.read(path, as_probabilities)
    file = said.find_labels(path, truth is not None) if labels is None else Path(labels)
    if file is not None:
        if truth is not None:
            raise ValueError(f"labels must be given once: {path} has its own, got {file} too")
        truth = read_label_file(file, predictions)
    # What is loaded twice from one place shows the same images.
    source = replace(
        predictions.source,
        path=str(path),
        probabilities=as_probabilities,
        numbering=str(path.resolve()),
    )
    return predictions._replace(source=source), truth


def save(
    path: str | os.PathLike[str], predictions: Predictions, labels: AnyArray | None = None
) -> None:
    """Writes predictions, and labels where there are any, to a compressed .npz file."""
    npz.write(Path(path), predictions, labels)


def read_image_names(predictions: Predictions) -> list[str] | None:
    """The name of the image behind each row, as collect stored it; None for other predictions."""
    path = predictions.source.path
    if path is None or not Path(path).is_dir():
        return None
    names = parquet.read_image_names(Path(path))
    return [names[number] for number in predictions.images().tolist()]
