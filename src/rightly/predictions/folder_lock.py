"""One run a folder: a lock that ends with the process that holds it, however that ends."""

import os
import platform
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".rightly.lock"
LEFTOVERS = ".*.parquet.*.part"  # what a writer has not finished, see `write_atomically`
ABANDONED_S = (
    3600  # after which a part of another host, unchanged, has no writer: they take seconds
)


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Holds a folder for this run alone; refuses one that another run holds."""
    file = _acquire(path)
    try:
        yield
    finally:
        (path / LOCK).unlink(missing_ok=True)  # before the lock ends: it is still ours
        os.close(file)


def _acquire(path: Path) -> int:
    while True:
        file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(file, path)
            if _is_at(file, path / LOCK):
                os.ftruncate(file, 0)
                os.pwrite(file, f"process {os.getpid()} on {platform.node()}".encode(), 0)
                return file
        except BlockingIOError as error:
            owner = os.pread(file, 200, 0).decode(errors="replace") or "another process"
            os.close(file)
            raise ValueError(
                f"out must be a folder that no other run writes to, but {owner} is writing to "
                f"{path}: wait until it has ended, or choose another folder"
            ) from error
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # its holder removed it meanwhile


def _lock(file: int, path: Path) -> None:
    try:
        if fcntl is None:
            raise OSError("this system has no flock")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        message = f"{path} cannot be locked ({error}): let no other run write to it"
        warnings.warn(message, UserWarning, stacklevel=2)


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one at this path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def remove_leftovers(path: Path) -> None:
    """Removes what writers left that are gone; what one is still writing stays."""
    for part in path.glob(LEFTOVERS):
        if not _has_writer(part):
            part.unlink(missing_ok=True)


def _has_writer(part: Path) -> bool:
    head, process, _ = part.name.rsplit(".", 2)
    if head.endswith(f".{platform.node()}"):
        return process.isdecimal() and _is_alive(int(process))
    try:
        return time.time() - part.stat().st_mtime < ABANDONED_S and not head.endswith(".parquet")
    except FileNotFoundError:
        return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
