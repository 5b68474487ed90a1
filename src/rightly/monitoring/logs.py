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
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rightly.files import encode_json, parse_json
from rightly.optional import require

NAMES = {
    "classes": ("class", "predicted_class"),
    "confidence": ("confidence",),
    "shift_score": ("shift_score",),
    "time": ("time",),
    "agreement": ("agreement",),
    "label": ("label",),
}
REQUIRED = ("classes", "confidence", "shift_score")
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
    return ": write the log with rightly apply, predict --jsonl or serve"


def _as_array(values: list[Any], kind: Any) -> np.ndarray | None:
    return None if any(value is None for value in values) else np.array(values, kind)
