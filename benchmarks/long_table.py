"""The long table of results: one row a setup, classifier, test set, method, seed and metric."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rightly.atomic_write import write_atomically


class Result(NamedTuple):
    """One measured value."""

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


def read(path: Path) -> list[Result]:
    """The rows of a file, or none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != Result._fields:
            raise ValueError(
                f"{path} must have the columns {', '.join(Result._fields)}, got {rows.fieldnames}: "
                "choose another file for --out"
            )
        return [
            Result(
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
            for row in rows
        ]


def write(path: Path, results: Iterable[Result]) -> None:
    """All rows, whole or not at all, so that a killed run leaves a table that can be read."""

    def put(part: Path) -> None:
        with part.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Result._fields)
            for row in results:
                rounded = f"{row.value:.8g}", row.n, f"{row.fit_seconds:.4g}"
                writer.writerow([*row[:6], *rounded])

    write_atomically(path, put)


def unique(items: Iterable[str]) -> list[str]:
    """Each once, in the order of first appearance."""
    return list(dict.fromkeys(items))


def chosen(asked: str | None, known: Sequence[str], what: str) -> list[str]:
    """The names in a list joined by commas, all where none is given; unknown ones are refused."""
    if not asked:
        return list(known)
    names = [name.strip() for name in asked.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"--{what} must be some of {', '.join(known)}, got {', '.join(unknown)}")
    return names
