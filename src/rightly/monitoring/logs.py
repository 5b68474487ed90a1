"""Logs of a classifier at work: CSV, JSON lines or Parquet, one row per prediction.

Columns: `class` (or `predicted_class`), `confidence`, `shift_score`; optional `time` (seconds
since 1970, or ISO 8601), `agreement` (share of views that agree) and `label`. Others are ignored.
"""

import csv
import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from rightly.files import encode_json, parse_json
from rightly.optional import require

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.predictions import Predictions

NAMES = {
    "classes": ("class", "predicted_class"),
    "confidence": ("confidence",),
    "shift_score": ("shift_score",),
    "time": ("time",),
    "agreement": ("agreement",),
    "label": ("label",),
}
REQUIRED = ("classes", "confidence", "shift_score")
# Columns that `predict` writes; an exported model's `describe_row` tells the same, with `class` for
# the class.
SCORES: dict[str, type] = {
    "predicted_class": np.int64,
    "confidence": np.float64,
    "raw_confidence": np.float64,
    "temperature": np.float64,  # where the method divides logits by one
    "accept": np.bool_,  # where the calibrator has a threshold
    "shift_score": np.float64,  # where it can be adapted
    "unadapted_confidence": np.float64,  # the same
    "agreement": np.float64,  # where it has views
    "prediction_set": np.str_,  # where scores were held out: numbers of classes, likeliest first
}
UNKNOWN = -1  # in place of a label
DISORDER_S = 3600.0  # by which a time may lie before an earlier row's, or ahead of the clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Log:
    """Predictions in the order in which they arrived, which is that of the rows."""

    classes: Int[np.ndarray, " n"]
    confidence: Float[np.ndarray, " n"]
    shift_score: Float[np.ndarray, " n"]
    time: Float[np.ndarray, " n"] | None  # seconds since 1970
    agreement: Float[np.ndarray, " n"] | None
    label: Int[np.ndarray, " n"] | None  # UNKNOWN where there is none

    def __len__(self) -> int:
        return len(self.classes)


def read_log(path: str | os.PathLike[str]) -> Log:
    """A log by its ending: .csv, .jsonl (or .ndjson), .parquet, or a folder of Parquet files.

    An optional column counts where every row has it; labels may be there for some rows only.
    """
    path = Path(path)
    columns: dict[str, list[Any]] = {name: [] for name in NAMES}
    for number, row in enumerate(_list_rows(path), 1):
        for name, spellings in NAMES.items():
            value = next((row[key] for key in spellings if row.get(key) not in (None, "")), None)
            if value is None and name in REQUIRED:
                raise ValueError(
                    f"{path} must have {' or '.join(spellings)} in every row, but row {number} has "
                    f"none{_suggest(name)}"
                )
            columns[name].append(None if value is None else _read(path, number, name, value))
    if not columns["classes"]:
        raise ValueError(f"{path} must hold at least one row, but it is empty")
    labels = [UNKNOWN if value is None else value for value in columns["label"]]
    return Log(
        np.array(columns["classes"], np.int64),
        np.array(columns["confidence"], np.float64),
        np.array(columns["shift_score"], np.float64),
        _check_times(path, _as_array(columns["time"], np.float64)),
        _as_array(columns["agreement"], np.float64),
        None if set(labels) == {UNKNOWN} else np.array(labels, np.int64),
    )


class LogWriter:
    """Appends one JSON line per prediction; several workers may write to one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Unbuffered, so that lines of several writers stay whole.
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise ValueError(
                f"log must be a file that can be written, got {path} ({error.strerror or error})"
            ) from error

    def write(self, rows: Iterable[Mapping[str, Any]], now: float) -> None:
        """Append rows of this time; a failure is logged, and no more."""
        lines = [encode_json({"time": now, **row}) + "\n" for row in rows]
        try:
            self._file.write("".join(lines).encode())
        except OSError as error:
            log.warning("%s was not written to: %s", self.path, error)

    def close(self) -> None:
        self._file.close()


def _list_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise ValueError(f"{path} must hold Parquet files, but there are none")
        for file in files:
            yield from _list_parquet(file)
        return
    readers: dict[str, Callable[[Path], Iterable[Mapping[str, Any]]]] = {
        ".csv": _list_csv,
        ".jsonl": _list_json,
        ".ndjson": _list_json,
        ".parquet": _list_parquet,
    }
    if not path.is_file():
        raise FileNotFoundError(f"there is no log {path}")
    if path.suffix.lower() not in readers:
        raise ValueError(f"log must end in {', '.join(readers)}, got {path.name!r}")
    yield from readers[path.suffix.lower()](path)


def _list_csv(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            yield from csv.DictReader(file)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a CSV file: {error}") from error


def _list_json(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"{path}, line {number} must be an object, got {str(row)[:60]}")
            yield row


def _list_parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    parquet = require("pyarrow.parquet", "collect")
    wanted = {spelling for spellings in NAMES.values() for spelling in spellings}
    try:
        with parquet.ParquetFile(path) as file:
            kept = [name for name in file.schema_arrow.names if name in wanted]
            for batch in file.iter_batches(columns=kept):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole Parquet file: {error}") from error


def _read(path: Path, number: int, name: str, value: Any) -> float | int:
    """One value as a number in its range."""
    expected = {
        "classes": "a class number from 0 on",
        "label": "a class number from 0 on",
        "confidence": "a number from 0 to 1",
        "agreement": "a number from 0 to 1",
        "shift_score": "a finite number",
        "time": "seconds since 1970 or ISO 8601",
    }[name]
    try:
        result = _read_time(value) if name == "time" else float(value)
        if name in ("classes", "label"):
            is_right = result >= 0 and result == int(result)
        else:
            is_right = math.isfinite(result) and (
                name in ("time", "shift_score") or 0 <= result <= 1
            )
    except (TypeError, ValueError, OverflowError):
        is_right = False
    if not is_right:
        raise ValueError(
            f"{path}, row {number}: {NAMES[name][0]} must be {expected}, got {str(value)[:60]!r}"
        )
    return int(result) if name in ("classes", "label") else result


def _read_time(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value)


def _check_times(path: Path, times: np.ndarray | None) -> np.ndarray | None:
    """Times without those ahead of the present clock, which count as those of earlier rows."""
    if times is None:
        return None
    is_known = times <= time.time() + DISORDER_S
    if not is_known.all():
        warnings.warn(
            f"{path} has times more than an hour ahead of the present clock in "
            f"{int((~is_known).sum())} rows, and they are ignored: set the clocks of all machines",
            UserWarning,
            stacklevel=3,
        )
        if not is_known.any():
            return None
        last = np.maximum.accumulate(np.where(is_known, np.arange(len(times)), -1))
        times = times[np.where(last < 0, is_known.argmax(), last)]
    behind = np.maximum.accumulate(times) - times > DISORDER_S
    if behind.any():
        warnings.warn(
            f"{path} has {int(behind.sum())} rows more than an hour older than rows before them: "
            "rows count in their order; sort them by time if they did not arrive in it",
            UserWarning,
            stacklevel=3,
        )
    return times


def _suggest(name: str) -> str:
    if name != "shift_score":
        return ""
    return ": write the log with rightly predict or serve"


def _as_array(values: list[Any], kind: Any) -> np.ndarray | None:
    return None if any(value is None for value in values) else np.array(values, kind)


def compute_scores(fitted: "Calibrator", predictions: "Predictions") -> dict[str, np.ndarray]:
    """Values of the columns of `list_scores`, whatever further views the predictions have."""
    from rightly.calibrators.drift_reference import measure_agreement
    from rightly.calibrators.shift_adaptation import score_shift

    predictions = fitted.select_views(predictions)
    names = list_scores(fitted)
    columns = {
        "predicted_class": fitted.classes(predictions),
        "confidence": fitted.confidence(predictions),
        "raw_confidence": predictions.confidence,
    }
    if "temperature" in names:
        columns["temperature"] = fitted.compute_temperature(predictions)
    if fitted.threshold is not None:
        columns["accept"] = columns["confidence"] >= fitted.threshold
    if "shift_score" in names:
        shift_scores, unadapted = score_shift(fitted, predictions)
        columns |= {"shift_score": shift_scores, "unadapted_confidence": unadapted}
    if "agreement" in names:
        columns["agreement"] = measure_agreement(fitted, predictions, columns["predicted_class"])
    arrays = {name: tensor.cpu().numpy() for name, tensor in columns.items()}
    if "prediction_set" in names:
        arrays["prediction_set"] = _list_sets(fitted, predictions)
    return {name: arrays[name].astype(SCORES[name]) for name in names}


def _list_sets(fitted: "Calibrator", predictions: "Predictions") -> np.ndarray:
    """Numbers of the classes in each set, the likeliest first, with spaces between them."""
    assert fitted.sets is not None
    p = fitted.probabilities(predictions)
    p = p.masked_fill(~fitted.sets.contains(p, predictions.logits), -1)
    sizes = (p >= 0).sum(-1).tolist()
    orders = p.topk(max(1, *sizes), -1).indices.tolist() if sizes else []
    texts = [" ".join(map(str, k[:size])) for k, size in zip(orders, sizes, strict=True)]
    return np.array(texts, np.str_)


def list_scores(fitted: "Calibrator") -> list[str]:
    """Names of the columns in SCORES that a calibrator has values for."""
    lacking = set() if fitted.view_names else {"agreement"}
    lacking |= set() if fitted.has_temperature else {"temperature"}
    lacking |= {"accept"} if fitted.threshold is None else set()
    lacking |= {"prediction_set"} if fitted.sets is None else set()
    if fitted.shift is None:
        lacking |= {"shift_score", "unadapted_confidence"}
    return [name for name in SCORES if name not in lacking]
