"""Where commands write: results to standard output, everything else to standard error.

Names of files, classes and test sets may hold `[`, `]` and `:x:`, so markup and emoji are off.
"""

import io
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from rightly.files import write_atomically

OUT = Console(highlight=False, markup=False, emoji=False)
ERR = Console(stderr=True, highlight=False, markup=False, emoji=False)


class ExitCode(IntEnum):
    """What a command ends with; 1 is left to Python itself and to whatever kills a process."""

    DONE = 0
    FAILED = 2  # refused or failed; one line on standard error says why
    REQUIREMENT_MISSED = 3
    DRIFT_ALARM = 4
    DOCTOR_FOUND = 5  # the doctor found something
    INTERRUPTED = 130


def write_utf8() -> None:
    """Lets standard streams write UTF-8 whatever the locale says; a terminal shows what it can."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                encoding=None if stream.isatty() else "utf-8",
                errors="replace" if stream.isatty() else stream.errors,
            )


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


def print_sentence(text: str) -> None:
    """Prints a paragraph of its own, wrapped between words in a terminal and one line elsewhere."""
    OUT.print(f"\n{text}", soft_wrap=not OUT.is_terminal)


def print_skipped(skipped: Mapping[str, Sequence[str]]) -> None:
    """Says which methods were not compared, by the inputs that they need."""
    for need in dict.fromkeys(need for needs in skipped.values() for need in needs):
        names = [name for name, needs in skipped.items() if need in needs]
        print_line(f"skipped: needs {need} ({', '.join(names)})", ERR, style="dim")


def write_json(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Writes a versioned JSON file, whole or not at all; what is not a number is null."""
    from rightly.files import encode_json

    text = encode_json({"format": kind, "version": 1, **content}, indent=1) + "\n"
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))
