"""Predictions in files: .npz archives and Parquet data sets. Nothing is ever pickled."""

import os
from pathlib import Path
from typing import Any

from rightly.predictions import npz, parquet
from rightly.predictions.predictions import Predictions
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels


def load(path: str | os.PathLike[str]) -> tuple[Predictions, Labels | None]:
    """Predictions and labels from a .npz file or a folder that `collect` wrote.

    Labels are None where there are none.
    """
    path = Path(path)
    predictions, labels = parquet.read(path) if path.is_dir() else npz.read(path)
    # What is loaded twice from one place shows the same images.
    return predictions._replace(_origin=str(path.resolve())), labels


def save(
    path: str | os.PathLike[str], predictions: Predictions, labels: AnyArray | None = None
) -> None:
    """Writes predictions, and labels where there are any, to a compressed .npz file."""
    npz.write(Path(path), predictions, labels)


def read_source(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The classifier whose predictions a folder holds; None for a .npz file, which does not say."""
    path = Path(path)
    return parquet.read_source(path) if path.is_dir() else None
