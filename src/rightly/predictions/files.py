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
    return parquet.read(path) if path.is_dir() else npz.read(path)


def save(
    path: str | os.PathLike[str], predictions: Predictions, labels: AnyArray | None = None
) -> None:
    """Writes predictions, and labels if given, to a compressed .npz file."""
    npz.write(Path(path), predictions, labels)


def source_of(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The classifier whose predictions a folder holds; None for a .npz file, which does not say."""
    path = Path(path)
    return parquet.source(path) if path.is_dir() else None
