"""Files: written whole or not at all, JSON that anybody may have written, digests."""

import csv
import hashlib
import json
import math
import os
import platform
import re
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
MAX_NESTING = 32  # Python's parser fails at a depth that depends on the stack it happens to have

# Strings are skipped whole, so that brackets in them do not count.
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


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


def parse_json(text: str | bytes) -> Any:
    """The value of JSON text; a ValueError says what is wrong with it."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    depth = 0
    for token in TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MAX_NESTING:
            raise ValueError(f"JSON must be nested at most {MAX_NESTING} deep, but it is deeper")
    return json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_float=_parse_number,
        object_pairs_hook=_build_object,
    )


def encode_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON text that `parse_json` reads; what is not finite is null."""
    return json.dumps(replace_nan(value), indent=indent, allow_nan=False)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON must hold numbers, got {name}")


def _parse_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"JSON must hold numbers that fit into 64 bits, got {text[:60]}")
    return number


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("JSON must name each key once, but some are named twice")
    return values


def replace_nan(value: Any) -> Any:
    """Plain values with None for each number that is not finite, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: replace_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest_file(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names."""
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        if path.is_dir():
            digest.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()
