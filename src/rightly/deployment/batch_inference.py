"""Confidence for every row of stored predictions: as a CSV file, or shard by shard as Parquet.

Columns of a Parquet data set of scores: `image`, `name`, `label` and `shift` as collected, those of
SCORES, and `class_name`, as far as they are known; a CSV file calls each shift by its name. A shard
of scores appears whole or not at all, so a run that was killed is resumed by the same call.
"""

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.calibrators import Calibrator, load_calibrator
from rightly.collection.distributed import run_shards
from rightly.collection.ray_cluster import Cluster
from rightly.evaluation.data_sets import name_shift
from rightly.evaluation.leakage import CalibrationData, check_same_classifier
from rightly.files import check_target, write_atomically, write_csv
from rightly.monitoring.logs import SCORES, compute_scores, list_scores
from rightly.optional import require
from rightly.predictions import Predictions, load
from rightly.predictions.files import read_image_names
from rightly.predictions.parquet import (
    KEY,
    make_predictions,
    open_shards,
    read_columns,
)
from rightly.predictions.store import Store
from rightly.progress import Progress, track

COLLECTED = ("image", "name", "label", "shift")


def apply(
    calibrator: str | os.PathLike[str],
    predictions: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: Cluster | None = None,
    progress: Progress | bool = False,
    any_classifier: bool = False,
    probabilities: bool = False,
) -> int | None:
    """Writes a confidence for every prediction to `out`: a .csv file, else a Parquet data set.

    `calibrator` and `predictions` are files; predictions that collect wrote as a folder are scored
    shard by shard, with a `cluster` by workers of Ray. Returns the number of rows of a CSV file.
    Predictions of another classifier than the calibrated one are refused unless `any_classifier`.
    With `probabilities`, arrays and tables hold these, as in `load`.
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
        begun = ScoringJob.begin(calibrator, predictions, out, any_classifier)
        with begun as job, track(progress) as step:
            _score_shards(job, cluster, step)
        return None
    if cluster is None:
        fitted = load_calibrator(calibrator)
        rows, _ = load(predictions, probabilities=probabilities)
        if not any_classifier:
            _check_classifier(fitted, rows.fingerprint)
        columns = _describe_rows(rows)
        columns |= {name: values.tolist() for name, values in compute_scores(fitted, rows).items()}
        names = rows.class_names or fitted.class_names
        if names:
            columns["class_name"] = [names[i] for i in columns["predicted_class"]]
    else:
        # Beside the file, because all nodes must see it; the system's own would be of each node.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            begun = ScoringJob.begin(calibrator, predictions, Path(folder), any_classifier)
            with begun as job, track(progress) as step:
                _score_shards(job, cluster, step)
                table = job.join()
            shifts = job.source.settings["shifts"]
        table["shift"] = ["" if value == 0 else shifts[value - 1] for value in table["shift"]]
        written = ("name", "image", "shift", *SCORES, "class_name")
        columns = {name: table[name] for name in written if name in table}
    count = len(columns["confidence"])
    write_atomically(out, lambda part: write_csv(part, {"index": list(range(count)), **columns}))
    return count


def _describe_rows(rows: Predictions) -> dict[str, list[Any]]:
    """File name, number and shift of the image that each row shows, as far as they are known."""
    columns: dict[str, list[Any]] = {}
    names = read_image_names(rows)
    if names is not None:
        columns["name"] = names
    if rows.image is not None:
        columns["image"] = rows.image.tolist()
    if names is not None or rows.shift is not None:
        shift = [0] * len(rows) if rows.shift is None else rows.shift.tolist()
        columns["shift"] = [name_shift("", value, rows.shift_names).strip() for value in shift]
    return columns


@dataclass(frozen=True)
class ScoringJob:
    """A calibrator's file, the predictions it is applied to and the scores that come of it."""

    calibrator: Path
    source: Store
    target: Store

    @classmethod
    @contextmanager
    def begin(
        cls, calibrator: Path, source: Path, out: Path, any_classifier: bool = False
    ) -> Iterator["ScoringJob"]:
        """A new folder of scores, or one that was begun with the same calibrator and input.

        Until it ends, no other run may write to the folder.
        """
        fitted = load_calibrator(calibrator)
        store = _open_complete(source)
        if not any_classifier:
            _check_classifier(fitted, store.settings.get("model_fingerprint"))
        predictions = _read_shard(store, 0)
        if predictions is not None:
            compute_scores(fitted, predictions[:1])  # what does not fit together is refused at once
        settings = {
            "calibrator": fitted.title,
            "calibrator_sha256": _digest(calibrator),
            "shards": store.settings["shards"],
            **{f"input_{name}": value for name, value in store.settings.items()},
        }
        with Store.claim(out, settings) as target:
            yield cls(calibrator, store, target)

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
        pa = require("pyarrow", "collect")
        parquet = require("pyarrow.parquet", "collect")
        parts = [parquet.read_table(path) for path in self.target.shards()]
        rows = pa.concat_tables(parts).sort_by([("shift", "ascending"), ("image", "ascending")])
        return {name: rows[name].to_pylist() for name in rows.column_names}

    def _write(self, k: int, fitted: Calibrator) -> None:
        pa = require("pyarrow", "collect")
        parquet = require("pyarrow.parquet", "collect")
        predictions = _read_shard(self.source, k)
        table = parquet.read_table(self.source.shard(k), columns=list(COLLECTED))
        columns: dict[str, np.ndarray] = {}
        if predictions is None:
            columns = {name: np.zeros(0, SCORES[name]) for name in list_scores(fitted)}
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
            lambda part: parquet.write_table(
                table, part, compression="zstd", write_page_checksum=True
            ),
        )


def _score_shards(job: ScoringJob, cluster: Cluster | None, progress: Progress) -> None:
    """Scores the shards that are not scored yet."""
    missing = job.target.missing()
    done = itertools.count(1)
    progress("applying", 0, len(missing))
    if cluster is not None:
        run_shards(cluster, job, lambda k, answer: progress("applying", next(done), len(missing)))
        return
    score = job.open()
    for k in missing:
        score(k)
        progress("applying", next(done), len(missing))


def _check_classifier(fitted: Calibrator, fingerprint: str | None) -> None:
    check_same_classifier("predictions", CalibrationData.of_calibrator(fitted), fingerprint)


def _open_complete(path: Path) -> Store:
    """The data set in a folder, with all of its shards."""
    return Store(path, open_shards(path)[1])


def _read_shard(store: Store, k: int) -> Predictions | None:
    """The predictions in one shard; None where none of its images could be decoded."""
    store.check_settings(store.shard(k))
    columns = read_columns(store.shard(k), store.settings)
    return make_predictions(columns, store.settings) if len(columns["image"]) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
