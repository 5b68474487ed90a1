"""Where commands write: results to standard output, everything else to standard error.

Names of files, classes and test sets may hold `[`, `]` and `:x:`, so markup and emoji are off; text
for a status line or a progress bar, which Rich would parse all the same, goes through here too.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from rightly.atomic_write import write_atomically

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

OUT = Console(highlight=False, markup=False, emoji=False)
ERR = Console(stderr=True, highlight=False, markup=False, emoji=False)
UNBOUND = 100_000  # columns: wider than any table


class ExitCode(IntEnum):
    """What a command ends with; 1 is left to Python itself and to whatever kills a process."""

    DONE = 0
    FAILED = 2  # refused or failed; one line on standard error says why
    REQUIREMENT_MISSED = 3
    DRIFT_ALARM = 4
    DOCTOR_FOUND = 5  # the doctor found something
    INTERRUPTED = 130


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Prints a warning as one plain line."""
    ERR.print(f"warning: {message}", style="yellow", soft_wrap=True)


def print_line(text: str, console: Console = OUT, style: str = "") -> None:
    """Prints text that the terminal may wrap, so that paths can be copied and lines searched."""
    console.print(text, style=style, soft_wrap=True)


@contextmanager
def show_status(message: str) -> Iterator[Callable[[str], object]]:
    """A line on standard error while something runs; the function given changes its text."""
    with ERR.status(Text(message)) as status:
        yield lambda text: status.update(Text(text))


@contextmanager
def show_progress(
    total: int,
    title: str = "",
    *columns: "ProgressColumn",
    keep: bool = False,
    quiet: bool = False,
) -> Iterator[Callable[..., object]]:
    """A bar on standard error; the function given advances it and may change its title."""
    if quiet:
        yield lambda count=1, title=None: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    texts = TextColumn("{task.description}", markup=False)
    bars = (texts, BarColumn(), MofNCompleteColumn(), *columns, TimeRemainingColumn())
    with Progress(*bars, console=ERR, transient=not keep) as progress:
        task = progress.add_task(title, total=total)

        def advance(count: int = 1, title: str | None = None) -> None:
            progress.update(task, advance=count, description=title)

        yield advance


def write_json(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Writes a versioned JSON file, whole or not at all; what is not a number is null."""
    document = {"format": kind, "version": 1, **_without_nan(content)}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda part: part.write_text(text))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def make_table(*headings: str, text: int = 1) -> Table:
    """A table without lines: `text` columns of names on the left, then numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i < text else "right", no_wrap=True)
    return table


def print_table(table: Table, console: Console = OUT) -> None:
    """Prints a table whose words stay whole: in its own width in pipes and files, which have no
    edge; in a narrow terminal as several tables, or as one paragraph a row.
    """
    width = _natural_width(table, console)
    if width <= console.width:
        console.print(table)
    elif not console.is_terminal:
        edgeless = Console(
            file=console.file, width=width, highlight=False, markup=False, emoji=False
        )
        edgeless.print(table)
    else:
        parts = _split(table, console)
        for i, part in enumerate(parts or _paragraphs(table)):
            if i and parts:
                console.print()
            console.print(part)


def _natural_width(table: Table, console: Console) -> int:
    options = console.options.update(width=UNBOUND)
    return console.measure(table, options=options).maximum


def _split(table: Table, console: Console) -> list[Table]:
    """Tables that fit, each with the first column; none where prose is among the columns."""
    if not all(column.no_wrap for column in table.columns):
        return []
    groups: list[list[Column]] = []
    for column in table.columns:
        if groups and not str(column.header):
            groups[-1].append(column)  # without a heading it belongs to the one before
        else:
            groups.append([column])
    first, *others = groups
    parts: list[list[Column]] = [[]]
    for group in others:
        wider = _select(table, [*first, *parts[-1], *group])
        if parts[-1] and _natural_width(wider, console) > console.width:
            parts.append([])
        parts[-1] += group
    tables = [_select(table, [*first, *part]) for part in parts]
    fit = all(_natural_width(part, console) <= console.width for part in tables)
    return tables if fit else []


def _select(table: Table, columns: Sequence[Column]) -> Table:
    part = Table(
        *(column.copy() for column in columns),
        box=None,
        header_style=table.header_style,
        pad_edge=table.pad_edge,
        padding=table.padding,
        collapse_padding=table.collapse_padding,
    )
    cells = zip(*(column.cells for column in columns), strict=True)
    for row, values in zip(table.rows, cells, strict=True):
        part.add_row(*values, style=row.style)
    return part


def _paragraphs(table: Table) -> list[RenderableType]:
    """One paragraph a row: its name, then every heading with its value."""
    first, *others = table.columns
    paragraphs: list[RenderableType] = []
    for name, *values in zip(first.cells, *(column.cells for column in others), strict=True):
        text = Text()
        for column, value in zip(others, values, strict=True):
            if str(value):
                title = f"{column.header}: " if str(column.header) else ""
                text.append(title, style="dim").append(_as_text(value)).append("; ")
        text.right_crop(2)
        heading = Text(str(name), style="bold")
        paragraphs.append(Group(heading, Padding(text, (0, 0, 0, 4))))
    return paragraphs


def _as_text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
