"""Measured values: intervals, tests, ranks, and tables of them as text and files.

Loads no torch. A table is laid out and drawn by `rightly.reporting`, loaded when it is asked for.
"""

import csv
import io
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, overload

import numpy as np

from rightly.checks import Schema, check_table, check_version
from rightly.files import encode_json, escape_formula, parse_json, write_atomically
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import NoiseFloor, Values, holm, min_resamples, paired_p
from rightly.optional import require
from rightly.resampling import Interval, interval

if TYPE_CHECKING:
    from rightly.reporting.layout import Layout

FORMAT, VERSION = "rightly-results", 2
HEADER: Schema = {"format": (FORMAT, lambda value: value == FORMAT)}
SIGNIFICANT = 0.05
RESAMPLES = 1000
REFERENCE = "temperature_scaling"  # what one does without thinking

T = TypeVar("T")
Row = TypeVar("Row")
FilePath = str | os.PathLike[str]
Key = tuple[str, str, str]  # calibrator, dataset, metric


class Result(NamedTuple):
    """One measured value, with what resampling the test set says about it.

    Interval and p values are of the mean over seeds, and so the same for each seed. `p` compares
    with the reference calibrator; `p_holm` is corrected for the number of calibrators compared.
    The floor is the ECE of labels drawn from the confidences: mean, and where 95 % lie below.
    """

    calibrator: str
    dataset: str
    metric: str
    value: float
    seed: int
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    floor: float = math.nan
    floor_high: float = math.nan


def resolve_resamples(resamples: int | None, methods: int) -> int:
    """The number of resamples; by default 1000, or as many as telling so many methods apart takes.

    Refuses fewer than with which any test could be significant.
    """
    needed = min_resamples(methods - 1, SIGNIFICANT)
    if resamples is None:
        return max(RESAMPLES, needed)
    if resamples < needed:
        raise ValueError(
            f"resamples must be at least {needed} to tell {methods} methods apart, got "
            f"{resamples}: with fewer, nothing can be significant"
        )
    return resamples


def resolve_reference(reference: str | None, methods: Sequence[str]) -> str:
    """The method to test against; by default temperature scaling, or the first."""
    if reference is None:
        return REFERENCE if REFERENCE in methods else methods[0]
    if reference not in methods:
        raise ValueError(
            f"reference must be one of the methods compared, {', '.join(methods)}, "
            f"got {reference!r}: add it to them, or choose another"
        )
    return reference


def attach_intervals(
    results: Sequence[Result],
    resampled: Mapping[Key, Sequence[Values]],
    floors: Mapping[tuple[str, str], NoiseFloor],
    reference: str,
) -> list[Result]:
    """The results with intervals and tests, from each one's values on the same resamples."""
    means = average_seeds(results)
    replicates = {key: np.mean(of_seeds, 0) for key, of_seeds in resampled.items()}
    intervals: dict[Key, Interval] = {
        key: interval(means[key], replicates[key], METRICS[key[2]].range) for key in means
    }
    p: dict[Key, float] = {}
    corrected: dict[Key, float] = {}
    for dataset, metric in unique((row.dataset, row.metric) for row in results):
        base = (reference, dataset, metric)
        if METRICS[metric].lower_is_better is None:
            continue
        tests = {
            key[0]: paired_p(means[key] - means[base], replicates[key] - replicates[base])
            for key in means
            if key[1:] == base[1:] and key != base
        }
        p |= {(name, dataset, metric): value for name, value in tests.items()}
        corrected |= {(name, dataset, metric): value for name, value in holm(tests).items()}
    without = NoiseFloor(math.nan, math.nan)
    attached = []
    for row in results:
        key = row[:3]
        floor = floors.get(row[:2], without) if row.metric == "ece" else without
        attached.append(
            row._replace(
                low=intervals[key].low,
                high=intervals[key].high,
                p=p.get(key, math.nan),
                p_holm=corrected.get(key, math.nan),
                floor=floor.mean,
                floor_high=floor.high,
            )
        )
    return attached


def average_seeds(results: Iterable[Result]) -> dict[Key, float]:
    """The mean over seeds of each calibrator, test set and metric."""
    values: dict[Key, list[float]] = {}
    for row in results:
        values.setdefault(row[:3], []).append(row.value)
    return {key: float(np.mean(of_seeds)) for key, of_seeds in values.items()}


def gather_notes(fit_notes: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each note, with the methods whose fits have it; "" is no note."""
    sentences = []
    for note in unique(note for notes in fit_notes.values() for note in notes if note):
        of_methods = []
        for name, notes in fit_notes.items():
            fits = notes.count(note)
            share = f" ({fits} of {len(notes)} fits)" if len(notes) > 1 else ""
            of_methods += [f"{name}{share}"] if fits else []
        sentences.append(f"{note[0].upper()}{note[1:]}: {', '.join(of_methods)}.")
    return sentences


def describe_class_changes(
    accuracies: Mapping[str, Mapping[str, tuple[float, float]]],
) -> list[str]:
    """A sentence for each method whose own classes change the accuracy: before, after, by test set.

    Its confidence and its metrics are about those classes.
    """
    sentences = []
    for name, sets in accuracies.items():
        changed = [
            f"{100 * before:.2f} to {100 * after:.2f} % on {dataset}"
            for dataset, (before, after) in sets.items()
            if before != after
        ]
        if changed:
            sentences.append(f"{name} predicts other classes: accuracy {', '.join(changed)}.")
    return sentences


def unique(items: Iterable[T]) -> list[T]:
    """Without repetitions, in the order of first appearance."""
    return list(dict.fromkeys(items))


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
    def lay_out(self) -> "Layout":
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
        """A pandas DataFrame, one row per result."""
        return require("pandas").DataFrame(self.to_records())

    def to_csv(self, path: FilePath | None = None) -> str:
        return _write(encode_csv(self.to_records()), path)

    def to_json(self, path: FilePath | None = None) -> str:
        """What is not available is null."""
        content = {"format": FORMAT, "version": VERSION, "kind": self.kind, **self.describe()}
        return _write(encode_json({**content, "rows": self.to_records()}, indent=1) + "\n", path)

    def to_latex(self, path: FilePath | None = None) -> str:
        r"""A tabular for LaTeX with \usepackage{booktabs}."""
        from rightly.reporting.markup import to_latex

        return _write(to_latex(self.lay_out()), path)

    def to_markdown(self, path: FilePath | None = None) -> str:
        from rightly.reporting.markup import to_markdown

        return _write(to_markdown(self.lay_out()), path)

    def to_html(self, path: FilePath | None = None) -> str:
        """A page with the table."""
        from rightly.reporting.markup import to_html, to_page

        return _write(to_page(self.kind.capitalize(), to_html(self.lay_out())), path)

    def _repr_html_(self) -> str:
        from rightly.reporting.markup import to_html

        return to_html(self.lay_out())


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
    place = os.fspath(path)
    try:
        content: dict[str, Any] = parse_json(Path(path).read_bytes())
        check_table(content, HEADER, required=("format",))
    except ValueError as error:
        raise ValueError(
            f"{place} must be JSON of results, as {kind}.to_json(path) or --json of the command "
            f"writes it: {error}"
        ) from error
    check_version(
        content.get("version"), VERSION, place, f"write it again with {kind}.to_json(path)"
    )
    if content.get("kind") != kind:
        raise ValueError(
            f"{place} must hold a {kind}, got a {content.get('kind')}: write one with "
            f"{kind}.to_json(path)"
        )
    return content


def restore_nan(record: Mapping[str, Any]) -> dict[str, Any]:
    """A row read from JSON, with nan where null stands for what is not available."""
    return {key: math.nan if value is None else value for key, value in record.items()}


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
