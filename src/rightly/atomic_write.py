"""Writing files so that nobody ever sees half of one, and nothing is replaced by mistake."""

import csv
import os
import platform
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def check_target(path: str | os.PathLike[str], inputs: Iterable[Any] = ()) -> None:
    """Refuses a place that no file can take: no folder around it, no plain file, or an input.

    Of `inputs` only paths count, so that callers may pass whatever they were given.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    for is_kind, kind in KINDS:
        if is_kind(mode):
            # Moving a file there would put it in the place of the link or device itself.
            place = f" to {path.readlink()}" if stat.S_ISLNK(mode) else ""
            raise ValueError(
                f"cannot write {path}: it is {kind}{place}, not a plain file: "
                "give the path of a new or plain file"
            )
    for source in inputs:
        if isinstance(source, str | os.PathLike) and _holds(Path(source), path):
            raise ValueError(
                f"cannot write {path}: it is read as input ({os.fspath(source)}) and would be "
                "lost: give another path to write to"
            )


def _holds(source: Path, path: Path) -> bool:
    """Whether an input is this existing file, or a folder around it."""
    try:
        return path.samefile(source) or (
            source.is_dir() and source.resolve() in path.resolve().parents
        )
    except OSError:  # no such input: whoever reads it says so
        return False


def write_atomically(path: Path, write: Callable[[Path], Any], inputs: Iterable[Any] = ()) -> None:
    """Writes beside the place and moves there when done; refuses what `check_target` does."""
    check_target(path, inputs)
    # Host and process, because several of both may write into a shared folder.
    part = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        # Full disks and limits say nothing of the file, or name the part that is removed below.
        reason = f"cannot write {path}: {error.strerror or error}"
        raise (OSError(error.errno, reason) if error.errno else OSError(reason)) from error
    finally:
        with suppress(OSError):
            part.unlink()


def escape_formula(cell: Any) -> Any:
    """Text of a CSV file that no spreadsheet takes for a formula; what is no text stays.

    OWASP's list of first characters; an apostrophe before them makes the cell plain text.
    """
    is_formula = isinstance(cell, str) and cell.startswith(FORMULAS)
    return f"'{cell}" if is_formula else cell


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Writes columns by name, in UTF-8."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = ([escape_formula(value) for value in column] for column in columns.values())
        writer.writerows(zip(*cells, strict=True))
