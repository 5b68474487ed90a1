"""Writing files so that nobody ever sees half of one."""

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Writes beside the place and moves there when done."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    # Host and process, because several of both may write into a shared folder.
    part = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
