"""Tables in CSV files that anybody may have written."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MAX_DIGITS = 9  # of a class number


def read_rows(table: Path) -> list[list[str]]:
    """The cells of a table, row by row; an error names the file."""
    if not table.is_file():
        raise FileNotFoundError(f"there is no table {table}")
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.reader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{table} must be a table of cells with commas between them, in UTF-8: {error}"
        ) from error


def read_header(table: Path) -> list[str]:
    """The first row of a table; empty where there is none, or the file is no table."""
    if not table.is_file():
        return []
    with suppress(csv.Error, ValueError), table.open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file), [])
    return []


def is_number(text: str) -> bool:
    """Whether a cell holds a class number."""
    return text.isdecimal() and len(text) <= MAX_DIGITS


def read_records(table: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """These columns of a table with a heading, by name; empty rows are left out."""
    header, *rows = read_rows(table) or [[]]
    missing = [name for name in columns if name not in header]
    if missing:
        raise ValueError(
            f"{table} must have the columns {list(columns)}, but {missing} are missing: it has "
            f"{header}"
        )
    places = {name: header.index(name) for name in columns}
    for row in rows:
        if row and len(row) <= max(places.values()):
            raise ValueError(f"{table} must have {len(header)} cells in each row, got {row}")
    return [{name: row[i] for name, i in places.items()} for row in rows if row]
