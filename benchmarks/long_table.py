"""The long table of results: one row a setup, classifier, test set, method, seed and metric."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.ranks import MethodRank, mean_ranks
from rightly.evaluation.results import Result
from rightly.evaluation.results import unique as unique
from rightly.files import write_atomically

VERSION = "1"  # of the file, in the first column of every row


class Entry(NamedTuple):
    """One measured value of a method that was fitted for a classifier."""

    setup: str
    classifier: str
    test_set: str
    method: str
    seed: int
    metric: str
    value: float
    n: int
    fit_seconds: float

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        return self[:6]


COLUMNS = ("version", *Entry._fields)


def read_entries(path: Path) -> list[Entry]:
    """The rows of a file, or none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise ValueError(
                f"{path} must have the columns {', '.join(COLUMNS)}, got {rows.fieldnames}: "
                "choose another file for --out"
            )
        return [_parse_entry(path, row) for row in rows]


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Writes all rows, whole or not at all, so that a killed run leaves a readable table."""

    def write(part: Path) -> None:
        with part.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for entry in entries:
                rounded = f"{entry.value:.8g}", entry.n, f"{entry.fit_seconds:.4g}"
                writer.writerow([VERSION, *entry.key, *rounded])

    write_atomically(path, write)


def append_entries(path: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Adds the rows whose key the file lacks, and returns all that it then holds."""
    stored = read_entries(path)
    keys = {entry.key for entry in stored}
    joined = stored + [entry for entry in entries if entry.key not in keys]
    if len(joined) > len(stored):
        write_entries(path, joined)
    return joined


def average_seeds(entries: Iterable[Entry]) -> dict[tuple[str, str, str, str], float]:
    """Mean over seeds by method, classifier, test set and metric."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    for entry in entries:
        key = (entry.method, entry.classifier, entry.test_set, entry.metric)
        values.setdefault(key, []).append(entry.value)
    return {key: float(np.mean(of_seeds)) for key, of_seeds in values.items()}


def rank_methods(entries: Iterable[Entry]) -> list[MethodRank]:
    """Mean ranks of the methods that every classifier has on every test set; ties share theirs.

    A method that some classifiers lack takes no part, because its rank would be among fewer.
    """
    by_classifier: dict[str, list[Result]] = {}
    for entry in entries:
        row = Result(entry.method, entry.test_set, entry.metric, entry.value, entry.seed)
        by_classifier.setdefault(entry.classifier, []).append(row)
    places = {(row.dataset, row.metric) for rows in by_classifier.values() for row in rows}
    measured = [
        {row.calibrator for row in rows if (row.dataset, row.metric) == place}
        for rows in by_classifier.values()
        for place in places
    ]
    return mean_ranks(by_classifier) if measured and set.intersection(*measured) else []


def parse_names(text: str | None, names: Sequence[str], option: str) -> list[str]:
    """The names in a list joined by commas, all where there is none; unknown ones are refused."""
    if not text:
        return list(names)
    parsed = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in parsed if name not in names]
    if unknown:
        raise ValueError(f"{option} must be of {', '.join(names)}, got {', '.join(unknown)}")
    return parsed


def _parse_entry(path: Path, row: dict[str, str]) -> Entry:
    if row["version"] != VERSION:
        raise ValueError(
            f"{path} must be a long table of version {VERSION}, got version {row['version']}: "
            "choose another file for --out, or read it with the release that wrote it"
        )
    return Entry(
        row["setup"],
        row["classifier"],
        row["test_set"],
        row["method"],
        int(row["seed"]),
        row["metric"],
        float(row["value"]),
        int(row["n"]),
        float(row["fit_seconds"]),
    )
