"""What comparisons, evaluations and rankings have in common: rows, files, tables, notebooks."""

import csv
import io
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

from rightly.evaluation.results import Bootstrap
from rightly.files import encode_json, escape_formula, parse_json, write_atomically
from rightly.optional import require
from rightly.reporting import markup
from rightly.reporting.layout import Layout

FORMAT, VERSION = "rightly-results", 1

Row = TypeVar("Row")
FilePath = str | os.PathLike[str]


class ResultTable(ABC, Generic[Row]):
    """Rows that can be iterated, written to files, and shown in a notebook.

    Every `to_` method returns the text, and writes it too where it gets a path.
    """

    kind: ClassVar[str]  # in JSON

    @property
    @abstractmethod
    def rows(self) -> Sequence[Row]: ...

    @abstractmethod
    def to_records(self) -> list[dict[str, Any]]:
        """The rows as flat dictionaries of plain values."""

    @abstractmethod
    def lay_out(self) -> Layout:
        """The table as it is shown."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What JSON holds besides the rows, as plain values."""

    @abstractmethod
    def plot(self, kind: str, **options: Any) -> Any:
        """Draws a figure and returns its first axes."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]

    def to_frame(self) -> Any:
        """A pandas DataFrame, one line a row."""
        return require("pandas").DataFrame(self.to_records())

    def to_csv(self, path: FilePath | None = None) -> str:
        return _write(encode_csv(self.to_records()), path)

    def to_json(self, path: FilePath | None = None) -> str:
        """What is not available is null."""
        content = {"format": FORMAT, "version": VERSION, "kind": self.kind, **self.describe()}
        return _write(encode_json({**content, "rows": self.to_records()}, indent=1) + "\n", path)

    def to_latex(self, path: FilePath | None = None) -> str:
        r"""A tabular for LaTeX with \usepackage{booktabs}."""
        return _write(markup.to_latex(self.lay_out()), path)

    def to_markdown(self, path: FilePath | None = None) -> str:
        return _write(markup.to_markdown(self.lay_out()), path)

    def to_html(self, path: FilePath | None = None) -> str:
        """A page with the table."""
        return _write(markup.to_page(self.kind.capitalize(), markup.to_html(self.lay_out())), path)

    def _repr_html_(self) -> str:
        return markup.to_html(self.lay_out())


def encode_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records with the same keys as a table; what is not available is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: "" if _is_nan(value) else escape_formula(value) for key, value in record.items()}
        for record in records
    )
    return text.getvalue()


def read_results(path: FilePath, kind: str) -> dict[str, Any]:
    """The content of a JSON file that `to_json` wrote, of this kind and version."""
    try:
        content = parse_json(Path(path).read_bytes())
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)} must be JSON of results, as {kind}.to_json(path) or --json of the "
            f"command writes it: {error}"
        ) from error
    if content.get("version") != VERSION:
        raise ValueError(
            f"{os.fspath(path)} has version {content.get('version')} of the format, this rightly "
            f"reads version {VERSION}: write it again, or install the rightly that wrote it"
        )
    if content.get("kind") != kind:
        raise ValueError(
            f"{os.fspath(path)} must hold a {kind}, got a {content.get('kind')}: write one with "
            f"{kind}.to_json(path)"
        )
    return content


def restore_nan(record: Mapping[str, Any]) -> dict[str, Any]:
    """A row read from JSON, with nan where null stands for what is not available."""
    return {key: math.nan if value is None else value for key, value in record.items()}


def describe_bootstrap(bootstrap: Bootstrap | None) -> dict[str, Any]:
    """How intervals were made, as plain values."""
    return {"bootstrap": None if bootstrap is None else dict(vars(bootstrap))}


def count(items: Any, noun: str) -> str:
    """How many there are: "1 test set", "2 test sets"."""
    number = items if isinstance(items, int) else len(items)
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _write(text: str, path: FilePath | None) -> str:
    if path is not None:
        write_atomically(Path(path), lambda part: part.write_text(text, encoding="utf-8"))
    return text
