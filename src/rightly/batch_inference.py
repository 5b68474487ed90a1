"""Scores: what a calibrator says about a Parquet data set, shard by shard, as another one.

Columns: `image`, `name`, `label` and `shift` as collected, then `predicted_class`, `confidence`,
`raw_confidence`, `temperature`, and `class_name` where it is known. One shard of scores belongs to
one of predictions and appears whole or not at all, so a run that was killed goes on where it was.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.atomic_write import write_atomically
from rightly.calibrators import AnyCalibrator, load_calibrator
from rightly.predictions import Predictions
from rightly.predictions.parquet import KEY, read_columns, read_settings
from rightly.predictions.store import Store

COLLECTED = ("image", "name", "label", "shift")
SCORES = {
    "predicted_class": np.int64,
    "confidence": np.float64,
    "raw_confidence": np.float64,
    "temperature": np.float64,
}


def scores(fitted: AnyCalibrator, predictions: Predictions) -> dict[str, np.ndarray]:
    """A column for each of SCORES, whatever further views the predictions have."""
    predictions = fitted.select_views(predictions)
    said = (
        fitted.classes(predictions),
        fitted.confidence(predictions),
        predictions.confidence,
        fitted.temperature(predictions),
    )
    return {
        name: values.cpu().numpy().astype(SCORES[name])
        for name, values in zip(SCORES, said, strict=True)
    }


@dataclass(frozen=True)
class Scoring:
    """A calibrator's file, the predictions it is applied to and the scores that come of it."""

    calibrator: Path
    source: Store
    target: Store

    @classmethod
    def begin(cls, calibrator: Path, source: Path, out: Path) -> "Scoring":
        """A new folder of scores, or one that was begun with the same calibrator and input."""
        fitted = load_calibrator(calibrator)
        given = _whole(source)
        predictions = _predictions(given, 0)
        if predictions is not None:
            scores(fitted, predictions[:1])  # what does not fit together is refused at once
        settings = {
            "calibrator": fitted.title,
            "calibrator_sha256": _digest(calibrator),
            "shards": given.settings["shards"],
            **{f"input_{name}": value for name, value in given.settings.items()},
        }
        return cls(calibrator, given, Store.begin(out, settings))

    def opened(self) -> Callable[[int], dict[str, Any]]:
        """A function that scores the shard of a number, with the calibrator loaded once."""
        fitted = load_calibrator(self.calibrator)
        if _digest(self.calibrator) != self.target.settings["calibrator_sha256"]:
            raise ValueError(f"{self.calibrator} is not the calibrator that apply began with")

        def score(k: int) -> dict[str, Any]:
            self._write(k, fitted)
            return {}

        return score

    def joined(self) -> dict[str, list[Any]]:
        """Every row of the scores: images as they are first, then shift by shift, as in `load`."""
        import pyarrow as pa
        import pyarrow.parquet

        parts = [pa.parquet.read_table(path) for path in self.target.shards()]
        rows = pa.concat_tables(parts).sort_by([("shift", "ascending"), ("image", "ascending")])
        return {name: rows[name].to_pylist() for name in rows.column_names}

    def _write(self, k: int, fitted: AnyCalibrator) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        predictions = _predictions(self.source, k)
        table = pa.parquet.read_table(self.source.shard(k), columns=list(COLLECTED))
        if predictions is None:
            said = {name: np.zeros(0, kind) for name, kind in SCORES.items()}
        else:
            said = scores(fitted, predictions)
        for name, values in said.items():
            table = table.append_column(name, pa.array(values))
        names = self.source.settings["class_names"] or fitted.class_names
        if names:
            chosen = [names[i] for i in said["predicted_class"]]
            table = table.append_column("class_name", pa.array(chosen, pa.string()))
        marked = table.replace_schema_metadata({KEY: json.dumps(dict(self.target.settings))})
        write_atomically(
            self.target.shard(k),
            lambda part: pa.parquet.write_table(
                marked, part, compression="zstd", write_page_checksum=True
            ),
        )


def _whole(path: Path) -> Store:
    """The data set in a folder, with all of its shards."""
    shards = Store(path, {}).shards()
    if not shards:
        raise ValueError(f"{path} holds no shards of predictions: it must be what collect wrote")
    settings = read_settings(shards[0])
    if "views" not in settings:
        raise ValueError(f"{path} holds scores already, not predictions to be scored")
    store = Store(path, settings)
    missing = store.missing()
    if missing:
        raise ValueError(
            f"{path} is unfinished: {len(missing)} of {settings['shards']} shards are missing; "
            "run the same collect again to complete it"
        )
    return store


def _predictions(store: Store, k: int) -> Predictions | None:
    """The predictions in one shard; None where none of its images could be decoded."""
    if read_settings(store.shard(k)) != store.settings:
        raise ValueError(f"{store.shard(k)} was collected with other settings than other shards")
    columns = read_columns(store.shard(k), store.settings)
    views = store.settings["views"]
    if not len(columns["image"]):
        return None
    return Predictions(
        columns["logits"],
        np.stack([columns[f"view_{name}"] for name in views], 1) if views else None,
        columns.get("features"),
        views or None,
        store.settings["class_names"],
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
