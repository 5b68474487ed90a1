"""Writing predictions as a Parquet data set, shard by shard (the columns: see `parquet.py`).

Shards appear whole or not at all, so a run that was killed goes on with those that are missing;
what it had of the next one is in a hidden file, `.partial-000000.parquet`. One run per folder: its
lock ends with the process that holds it, however that ends.
"""

import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rightly.files import parse_json, write_atomically
from rightly.optional import require
from rightly.predictions.masking import MASKED
from rightly.predictions.parquet import (
    DAMAGE,
    KEY,
    SKIPPED,
    VERSION,
    damage_error,
    list_shards,
    name_shard,
    read_schema,
    read_settings,
    to_array,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PARTIALS = ".partial-*.parquet"
DONE = b"rightly.done"
LOCK = ".rightly.lock"
LEFTOVERS = ".*.parquet.*.part"  # what a writer has not finished, see `write_atomically`
ABANDONED_S = 3600  # an unchanged part of another host has no writer: they take seconds


@dataclass(frozen=True)
class Block:
    """Outputs for several images: rows of the data set."""

    image: np.ndarray  # (n,) number of the image
    names: list[str]
    labels: np.ndarray | None  # (n,)
    shift: np.ndarray  # (n,)
    logits: np.ndarray  # (n, c)
    view_logits: np.ndarray | None  # (n, m, c)
    features: np.ndarray | None  # (n, d)
    skipped: tuple[tuple[str, str], ...] = ()  # name and reason
    image_hash: np.ndarray | None = None  # (n,) of the image before any shift


@dataclass(frozen=True)
class Store:
    """A folder of shards and the settings they were made with."""

    path: Path
    settings: Mapping[str, Any]

    @classmethod
    @contextmanager
    def claim(cls, path: Path, settings: Mapping[str, Any]) -> Iterator["Store"]:
        """The same as `begin`, while no other run may write to the folder."""
        cls._make_folder(path)
        with lock_folder(path):
            store = cls.begin(path, settings)
            yield store

    @classmethod
    def begin(cls, path: Path, settings: Mapping[str, Any]) -> "Store":
        """A new folder, or one that was begun with the same settings."""
        # As they will be read back: JSON knows no tuples.
        wanted = json.loads(json.dumps({"version": VERSION, **settings}))
        cls._make_folder(path)
        _remove_leftovers(path)
        store = cls(path, wanted)
        stored_before = [*store.shards(), *sorted(path.glob(PARTIALS))]
        if stored_before:
            stored = read_settings(stored_before[0])
            differences = "; ".join(
                f"{key} was {_shorten(stored.get(key))}, now {_shorten(wanted[key])}"
                for key in wanted
                if stored.get(key) != wanted[key]
            )
            if differences:
                raise ValueError(
                    f"{path} holds another collection ({differences}): choose another folder for "
                    "out, or remove this one"
                )
        elif any(file.name != LOCK for file in path.iterdir()):
            raise ValueError(f"out must be a new or empty folder, but {path} holds other files")
        return store

    @staticmethod
    def _make_folder(path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise ValueError(f"out must be a folder, but {path} is a file")
        path.mkdir(parents=True, exist_ok=True)

    def missing(self) -> list[int]:
        """Numbers of the shards that are still to be written."""
        return [k for k in range(self.settings["shards"]) if not self.shard(k).is_file()]

    def shards(self) -> list[Path]:
        """Those that are there, in order."""
        return list_shards(self.path, self.settings.get("shards"))

    def shard(self, k: int) -> Path:
        """The place of one shard."""
        return self.path / name_shard(k)

    def partial(self, k: int) -> Path:
        """The place of the first rows of one shard, while the others are missing."""
        return self.path / f".partial-{k:06d}.parquet"

    def write(self, k: int, block: Block) -> None:
        """Writes one shard, whole or not at all; one without rows needs another to be there."""
        table = self._make_table(block) if len(block.image) else self._make_empty_table(block)

        try:
            _write_table(self.shard(k), table)
        except OSError as error:
            raise OSError(
                f"{error}; what was collected before is kept: run the same command again to resume"
            ) from error
        self.partial(k).unlink(missing_ok=True)

    def write_partial(self, k: int, block: Block, done: int) -> None:
        """Writes what is known of the first `done` images of a shard, if any could be decoded."""
        if len(block.image):
            table = self._make_table(block)
            metadata = {**table.schema.metadata, DONE: str(done)}
            _write_table(self.partial(k), table.replace_schema_metadata(metadata))

    def read_partial(self, k: int) -> tuple[Block, int] | None:
        """What `write_partial` wrote, and of how many images; None where there is nothing."""
        if not self.partial(k).is_file():
            return None
        self.check_settings(self.partial(k))
        try:
            table = require("pyarrow.parquet", "collect").read_table(
                self.partial(k), page_checksum_verification=True
            )
            metadata = table.schema.metadata
            skipped, done = json.loads(metadata[SKIPPED]), int(metadata[DONE])
        except DAMAGE as error:
            raise damage_error(self.partial(k), error) from error

        def read(name: str) -> np.ndarray:
            return to_array(table[name].combine_chunks())

        has = table.column_names
        views = [read(f"view_{name}") for name in self.settings["views"]]
        labels = read("label")
        block = Block(
            read("image"),
            table["name"].to_pylist(),
            None if (labels < 0).all() else labels,
            read("shift"),
            read("logits"),
            np.stack(views, 1) if views else None,
            read("features") if "features" in has else None,
            tuple((name, reason) for name, reason in skipped),
            read("image_hash") if "image_hash" in has else None,
        )
        return block, done

    def skipped(self) -> list[tuple[str, str]]:
        """Name and reason of every image that could not be decoded, from a complete collection."""
        found: list[tuple[str, str]] = []
        for k in range(self.settings["shards"]):
            self.check_settings(self.shard(k))
            listed = parse_json(read_schema(self.shard(k)).metadata[SKIPPED])
            found += [(name, reason) for name, reason in listed]
        return found

    def check_settings(self, shard: Path) -> None:
        """Refuses a shard that another run wrote."""
        if read_settings(shard) != self.settings:
            raise ValueError(
                f"{shard} was collected with other settings than other shards: remove it and run "
                "the same collect again to replace it"
            )

    def _make_empty_table(self, block: Block) -> Any:
        """No rows, in the columns of another shard: nothing else tells how wide they are."""
        shards = self.shards()
        if not shards:
            name, reason = block.skipped[0]
            raise ValueError(f"no image could be decoded; the first is {name}: {reason}")
        empty = read_schema(shards[0]).empty_table()
        return empty.replace_schema_metadata(self._make_metadata(block))

    def _make_table(self, block: Block) -> Any:
        pa = require("pyarrow", "collect")
        labels = [None] * len(block.image) if block.labels is None else block.labels
        columns = {
            "image": pa.array(block.image, pa.int64()),
            "name": pa.array(block.names, pa.string()),
            "label": pa.array(labels, pa.int64()),
            "shift": pa.array(block.shift, pa.int32()),
            "logits": self._make_lists(block.logits),
        }
        if block.view_logits is not None:
            for i, name in enumerate(self.settings["views"]):
                columns[f"view_{name}"] = self._make_lists(block.view_logits[:, i])
        if block.features is not None:
            columns["features"] = self._make_lists(block.features)
        if block.image_hash is not None:
            columns["image_hash"] = pa.array(block.image_hash, pa.int64())
        return pa.table(columns).replace_schema_metadata(self._make_metadata(block))

    def _make_lists(self, values: np.ndarray) -> Any:
        """A column of lists of one length, in the type that is stored."""
        pa, dtype = require("pyarrow", "collect"), self.settings["dtype"]
        with np.errstate(over="ignore"):
            stored = values.astype(dtype)
        # Masked logits have no place in float16 but -inf, and are read back as what they are.
        if not (np.isfinite(stored) | (values <= MASKED)).all():
            raise ValueError(
                f"values up to {np.abs(values).max():g} do not fit into {dtype}: "
                "collect with dtype='float32'"
            )
        return pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), values.shape[-1])

    def _make_metadata(self, block: Block) -> dict[bytes, str]:
        return {KEY: json.dumps(dict(self.settings)), SKIPPED: json.dumps(block.skipped)}


def _write_table(path: Path, table: Any) -> None:
    parquet = require("pyarrow.parquet", "collect")
    options = {"compression": "zstd", "write_page_checksum": True}
    write_atomically(path, lambda part: parquet.write_table(table, part, **options))


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Holds a folder for this run alone; refuses one that another run holds."""
    file = _acquire_lock(path)
    try:
        yield
    finally:
        (path / LOCK).unlink(missing_ok=True)  # before the lock ends: it is still ours
        os.close(file)


def _acquire_lock(path: Path) -> int:
    while True:
        file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock_file(file, path)
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


def _lock_file(file: int, path: Path) -> None:
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


def _remove_leftovers(path: Path) -> None:
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
