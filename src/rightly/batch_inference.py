"""Confidence for every row of stored predictions: as a CSV file, or shard by shard as Parquet.

Columns of a Parquet data set of scores: `image`, `name`, `label` and `shift` as collected, then
`predicted_class`, `confidence`, `raw_confidence`, `temperature`, and `class_name` where it is
known. One shard of scores belongs to one of predictions and appears whole or not at all, so a run
that was killed is resumed by the same call.
"""

import csv
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.atomic_write import check_target, escape_formula, write_atomically
from rightly.calibrators import AnyCalibrator, load_calibrator
from rightly.collection.distributed import run_shards
from rightly.collection.ray_cluster import Cluster
from rightly.predictions import Predictions, load
from rightly.predictions.parquet import (
    KEY,
    find_complete,
    make_predictions,
    read_columns,
    read_settings,
)
from rightly.predictions.store import Store

COLLECTED = ("image", "name", "label", "shift")
SCORES = {
    "predicted_class": np.int64,
    "confidence": np.float64,
    "raw_confidence": np.float64,
    "temperature": np.float64,
}

Progress = Callable[[int, int], object]  # shards scored, shards to be scored


def apply(
    calibrator: str | os.PathLike[str],
    predictions: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> int | None:
    """Writes a confidence for every prediction to `out`: a .csv file, else a Parquet data set.

    `calibrator` and `predictions` are files; predictions that collect wrote as a folder are scored
    shard by shard, with a `cluster` by workers of Ray. Returns the number of rows of a CSV file.
    """
    calibrator, predictions, out = Path(calibrator), Path(predictions), Path(out)
    if out.suffix == ".csv" or os.path.lexists(out) and not out.is_dir():
        check_target(out, [calibrator, predictions])
    if cluster and not predictions.is_dir():
        raise ValueError(
            f"cluster is for folders of predictions that collect wrote, got {predictions}: "
            "leave it out"
        )
    if predictions.is_dir() and out.suffix != ".csv":
        _score_shards(ScoringJob.begin(calibrator, predictions, out), cluster, progress)
        return None
    if cluster is None:
        fitted, (rows, _) = load_calibrator(calibrator), load(predictions)
        columns = {name: values.tolist() for name, values in compute_scores(fitted, rows).items()}
        names = rows.class_names or fitted.class_names
        if names:
            columns["class_name"] = [names[i] for i in columns["predicted_class"]]
    else:
        # Beside the file, because all nodes must see it; the system's own would be of each node.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            job = ScoringJob.begin(calibrator, predictions, Path(folder))
            _score_shards(job, cluster, progress)
            table = job.join()
        columns = {name: table[name] for name in (*SCORES, "class_name") if name in table}
    count = len(columns["confidence"])
    write_atomically(out, lambda part: _write_csv(part, {"index": list(range(count)), **columns}))
    return count


def compute_scores(fitted: AnyCalibrator, predictions: Predictions) -> dict[str, np.ndarray]:
    """A column for each of SCORES, whatever further views the predictions have."""
    predictions = fitted.select_views(predictions)
    columns = (
        fitted.classes(predictions),
        fitted.confidence(predictions),
        predictions.confidence,
        fitted.temperature(predictions),
    )
    return {
        name: values.cpu().numpy().astype(SCORES[name])
        for name, values in zip(SCORES, columns, strict=True)
    }


@dataclass(frozen=True)
class ScoringJob:
    """A calibrator's file, the predictions it is applied to and the scores that come of it."""

    calibrator: Path
    source: Store
    target: Store

    @classmethod
    def begin(cls, calibrator: Path, source: Path, out: Path) -> "ScoringJob":
        """A new folder of scores, or one that was begun with the same calibrator and input."""
        fitted = load_calibrator(calibrator)
        store = _open_complete(source)
        predictions = _read_shard(store, 0)
        if predictions is not None:
            compute_scores(fitted, predictions[:1])  # what does not fit together is refused at once
        settings = {
            "calibrator": fitted.title,
            "calibrator_sha256": _digest(calibrator),
            "shards": store.settings["shards"],
            **{f"input_{name}": value for name, value in store.settings.items()},
        }
        return cls(calibrator, store, Store.begin(out, settings))

    def open(self) -> Callable[[int], dict[str, Any]]:
        """A function that scores the shard of a number, with the calibrator loaded once."""
        fitted = load_calibrator(self.calibrator)
        if _digest(self.calibrator) != self.target.settings["calibrator_sha256"]:
            raise ValueError(f"{self.calibrator} is not the calibrator that apply began with")

        def score(k: int) -> dict[str, Any]:
            self._write(k, fitted)
            return {}

        return score

    def join(self) -> dict[str, list[Any]]:
        """Every row of the scores: unshifted images first, then shift by shift, as in `load`."""
        import pyarrow as pa
        import pyarrow.parquet

        parts = [pa.parquet.read_table(path) for path in self.target.shards()]
        rows = pa.concat_tables(parts).sort_by([("shift", "ascending"), ("image", "ascending")])
        return {name: rows[name].to_pylist() for name in rows.column_names}

    def _write(self, k: int, fitted: AnyCalibrator) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        predictions = _read_shard(self.source, k)
        table = pa.parquet.read_table(self.source.shard(k), columns=list(COLLECTED))
        if predictions is None:
            columns = {name: np.zeros(0, kind) for name, kind in SCORES.items()}
        else:
            columns = compute_scores(fitted, predictions)
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values))
        names = self.source.settings["class_names"] or fitted.class_names
        if names:
            predicted = [names[i] for i in columns["predicted_class"]]
            table = table.append_column("class_name", pa.array(predicted, pa.string()))
        table = table.replace_schema_metadata({KEY: json.dumps(dict(self.target.settings))})
        write_atomically(
            self.target.shard(k),
            lambda part: pa.parquet.write_table(
                table, part, compression="zstd", write_page_checksum=True
            ),
        )


def _score_shards(job: ScoringJob, cluster: Cluster | None, progress: Progress) -> None:
    """Scores the shards that are not scored yet."""
    missing = job.target.missing()
    done = itertools.count(1)
    progress(0, len(missing))
    if cluster is not None:
        run_shards(cluster, job, lambda k, answer: progress(next(done), len(missing)))
        return
    score = job.open()
    for k in missing:
        score(k)
        progress(next(done), len(missing))


def _open_complete(path: Path) -> Store:
    """The data set in a folder, with all of its shards."""
    return Store(path, find_complete(path)[1])


def _read_shard(store: Store, k: int) -> Predictions | None:
    """The predictions in one shard; None where none of its images could be decoded."""
    if read_settings(store.shard(k)) != store.settings:
        raise ValueError(f"{store.shard(k)} was collected with other settings than other shards")
    columns = read_columns(store.shard(k), store.settings)
    return make_predictions(columns, store.settings) if len(columns["image"]) else None


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = ([escape_formula(value) for value in column] for column in columns.values())
        writer.writerows(zip(*cells, strict=True))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
