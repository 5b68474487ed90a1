"""Confidence for every row of stored predictions: as a CSV file, or shard by shard as Parquet.

Columns of a Parquet data set of scores: `image`, `name`, `label` and `shift` as collected, then
`predicted_class`, `confidence`, `raw_confidence`, `temperature`, `context_score` where the
calibrator can be adapted, and `class_name` where it is known. One shard of scores belongs to one
of predictions and appears whole or not at all, so a run that was killed is resumed by the same
call.
"""

import csv
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

from rightly.atomic_write import check_target, escape_formula, write_atomically
from rightly.calibrators import AnyCalibrator, FittedCalibrator, as_fitted, load_calibrator
from rightly.calibrators.adaptation.adapting import compute_residuals
from rightly.collection.distributed import run_shards
from rightly.collection.ray_cluster import Cluster
from rightly.evaluation.leakage import CalibrationData, check_same_classifier
from rightly.predictions import Predictions, load
from rightly.predictions.parquet import KEY, open_shards, read_columns
from rightly.predictions.store import Store

COLLECTED = ("image", "name", "label", "shift")
SCORES = {
    "predicted_class": np.int64,
    "confidence": np.float64,
    "raw_confidence": np.float64,
    "temperature": np.float64,
    "context_score": np.float64,  # where the calibrator can be adapted
}

Progress = Callable[[int, int], object]  # shards scored, shards to be scored


def apply(
    calibrator: str | os.PathLike[str],
    predictions: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
    any_classifier: bool = False,
) -> int | None:
    """Writes a confidence for every prediction to `out`: a .csv file, else a Parquet data set.

    `calibrator` and `predictions` are files; predictions that collect wrote as a folder are scored
    shard by shard, with a `cluster` by workers of Ray. Returns the number of rows of a CSV file.
    Predictions of another classifier than the calibrated one are refused unless `any_classifier`.
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
        with ScoringJob.begin(calibrator, predictions, out, any_classifier) as job:
            _score_shards(job, cluster, progress)
        return None
    if cluster is None:
        fitted, (rows, _) = load_calibrator(calibrator), load(predictions)
        if not any_classifier:
            _check_classifier(fitted, rows.fingerprint)
        columns = {name: values.tolist() for name, values in compute_scores(fitted, rows).items()}
        names = rows.class_names or fitted.class_names
        if names:
            columns["class_name"] = [names[i] for i in columns["predicted_class"]]
    else:
        # Beside the file, because all nodes must see it; the system's own would be of each node.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            begun = ScoringJob.begin(calibrator, predictions, Path(folder), any_classifier)
            with begun as job:
                _score_shards(job, cluster, progress)
                table = job.join()
        columns = {name: table[name] for name in (*SCORES, "class_name") if name in table}
    count = len(columns["confidence"])
    write_atomically(out, lambda part: _write_csv(part, {"index": list(range(count)), **columns}))
    return count


def compute_scores(fitted: AnyCalibrator, predictions: Predictions) -> dict[str, np.ndarray]:
    """The columns of `list_scores`, whatever further views the predictions have."""
    predictions = fitted.select_views(predictions)
    columns = [
        fitted.classes(predictions),
        fitted.confidence(predictions),
        predictions.confidence,
        fitted.temperature(predictions),
    ]
    names = list_scores(fitted)
    if "context_score" in names:
        columns.append(compute_residuals(as_fitted(fitted).calibrator, predictions))
    return {
        name: values.cpu().numpy().astype(SCORES[name])
        for name, values in zip(names, columns, strict=True)
    }


def list_scores(fitted: AnyCalibrator) -> list[str]:
    """The names in SCORES of what a calibrator can tell."""
    has_context = as_fitted(fitted).calibrator.context is not None
    return [name for name in SCORES if has_context or name != "context_score"]


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


def _check_classifier(fitted: FittedCalibrator, fingerprint: str | None) -> None:
    check_same_classifier("predictions", CalibrationData.of_calibrator(fitted), fingerprint)


def _open_complete(path: Path) -> Store:
    """The data set in a folder, with all of its shards."""
    return Store(path, open_shards(path)[1])


def _read_shard(store: Store, k: int) -> Predictions | None:
    """The predictions in one shard; None where none of its images could be decoded."""
    store.check_settings(store.shard(k))
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


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = ([escape_formula(value) for value in column] for column in columns.values())
        writer.writerows(zip(*cells, strict=True))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
