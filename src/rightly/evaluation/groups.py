"""Groups of rows, such as hospitals or cameras: from a table or from arrays to every test set."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.datasets.csv_table import is_number, read_header, read_records
from rightly.evaluation.data_sets import LabelledSet, name_shift
from rightly.predictions import Predictions
from rightly.predictions.files import read_image_names

IDS = ("image", "row")  # columns that tell which rows are meant
GroupNames = np.ndarray  # (n,) of text, empty for a row without a group


@dataclass(frozen=True)
class _Source:
    """The rows of a data set, before it is split by shifts."""

    name: str
    count: int
    shift: np.ndarray | None
    shift_names: Sequence[str]
    images: Sequence[str] | None

    @classmethod
    def of(cls, name: str, predictions: Predictions) -> "_Source":
        shift = None if predictions.shift is None else predictions.shift.cpu().numpy()
        images = read_image_names(predictions)
        if images is None and predictions.image is not None:
            images = [str(number) for number in predictions.image.tolist()]
        return cls(name, len(predictions), shift, predictions.shift_names, images)

    def split(self, groups: GroupNames) -> dict[str, GroupNames]:
        """The groups of each test set that the data set makes, by its name."""
        if self.shift is None:
            return {self.name: groups}
        return {
            name_shift(self.name, value, self.shift_names): groups[self.shift == value]
            for value in np.unique(self.shift).tolist()
        }


def resolve_groups(groups: Any, tests: Mapping[str, LabelledSet]) -> dict[str, GroupNames]:
    """The group of every row, by test set.

    `groups` is a CSV file with the columns group and image (the name that collect stored, or the
    number in `Predictions.image`) or row (from 0); a column test tells data sets apart. Or it maps
    names of data sets to one group a row.
    """
    sources = {name: _Source.of(name, predictions) for name, (predictions, _) in tests.items()}
    if isinstance(groups, str | os.PathLike):
        of_rows = _read_table(Path(groups), sources)
    elif isinstance(groups, Mapping):
        of_rows = _check_mapping(groups, sources)
    else:
        raise TypeError(
            "groups must be a CSV file or map names of tests to one group a row, got "
            f"{type(groups).__name__}"
        )
    return {
        title: part
        for name, names in of_rows.items()
        for title, part in sources[name].split(names).items()
    }


def _check_mapping(
    groups: Mapping[str, Any], sources: Mapping[str, _Source]
) -> dict[str, GroupNames]:
    unknown = [name for name in groups if name not in sources]
    if unknown or not groups:
        raise ValueError(f"groups must be of tests, {list(sources)}, got {unknown or 'none'}")
    for name, values in groups.items():
        if np.shape(values) != (sources[name].count,):
            raise ValueError(
                f"groups[{name!r}] must have one group for each of {sources[name].count} rows, "
                f"got shape {np.shape(values)}"
            )
    return {name: np.array([str(x) for x in values]) for name, values in groups.items()}


def _read_table(table: Path, sources: Mapping[str, _Source]) -> dict[str, GroupNames]:
    header = read_header(table)
    ids = [name for name in IDS if name in header]
    if table.is_file() and len(ids) != 1:
        raise ValueError(
            f"groups must have one of the columns image and row beside group, but {table} has "
            f"{header}: name one of them"
        )
    has_tests = "test" in header
    columns = [*ids, "group", *(["test"] if has_tests else [])]
    records = read_records(table, columns)
    if has_tests:
        unknown = {record["test"] for record in records} - set(sources)
        if unknown:
            raise ValueError(
                f"groups must name tests of {list(sources)} in its column test, but {table} has "
                f"{sorted(unknown)[0]!r}"
            )
    elif ids == ["row"] and len(sources) > 1:
        raise ValueError(
            f"groups must have a column test where rows are numbers of several data sets, "
            f"{list(sources)}, but {table} has {header}: add one, or a column image"
        )
    of_rows = {}
    for name, source in sources.items():
        here = [record for record in records if not has_tests or record["test"] == name]
        found = _look_up(table, ids[0], here, source)
        if (found != "").any():
            of_rows[name] = found
    if not of_rows:
        first = records[0][ids[0]] if records else "none"
        raise ValueError(
            f"groups must be of rows that tests hold, but none of the {len(records)} in {table} "
            f"is, such as {ids[0]} {first!r}: see what collect stored"
        )
    return of_rows


def _look_up(
    table: Path, column: str, records: Sequence[Mapping[str, str]], source: _Source
) -> GroupNames:
    """The group of each row of a data set."""
    known: dict[str, str] = {}
    for record in records:
        key, group = record[column].strip(), record["group"].strip()
        if known.setdefault(key, group) != group:
            raise ValueError(
                f"groups must have one group for each {column}, but {table} has {known[key]!r} "
                f"and {group!r} for {key!r}"
            )
    if column == "image":
        if source.images is None and records:
            raise ValueError(
                f"groups must have a column row for {source.name}, which holds no names or numbers "
                f"of images, but {table} has a column image"
            )
        return np.array([known.get(image, "") for image in source.images or ()], dtype=np.str_)
    wrong = [key for key in known if not is_number(key) or int(key) >= source.count]
    if wrong:
        raise ValueError(
            f"groups must have rows from 0 to {source.count - 1} of {source.name}, but {table} "
            f"has {wrong[0]!r}"
        )
    by_number = {int(key): group for key, group in known.items()}
    return np.array([by_number.get(row, "") for row in range(source.count)], dtype=np.str_)
