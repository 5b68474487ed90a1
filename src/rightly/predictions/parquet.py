"""Predictions as a Parquet data set: a folder of shards, one row a sample.

Columns: `index` and `name` of the image, `label` (null where unknown), `shift`, `logits`, one
`view_NAME` for each view, and `features` where they were kept; settings are JSON in the schema's
metadata under "rightly". Shards appear whole or not at all, so a run that was killed goes on with
those that are missing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rightly.atomic_write import write_atomically
from rightly.predictions.predictions import Predictions, checked_labels
from rightly.tensor_shapes import Labels

VERSION = 1
SHARDS = "part-*.parquet"  # and nothing beside them: polars refuses a folder with other files
LEFTOVERS = ".part-*.parquet.*.part"  # what a killed run was writing
KEY, SKIPPED = b"rightly", b"rightly.skipped"
# What pyarrow raises when bytes of a shard are not those that were written.
DAMAGE = (OSError, ValueError, KeyError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Block:
    """What was said about some images: rows of the data set."""

    index: np.ndarray  # (n,) number of the image
    names: list[str]
    labels: np.ndarray | None  # (n,)
    shift: np.ndarray  # (n,)
    logits: np.ndarray  # (n, c)
    view_logits: np.ndarray | None  # (n, m, c)
    features: np.ndarray | None  # (n, d)
    skipped: tuple[tuple[str, str], ...] = ()  # name and reason


@dataclass(frozen=True)
class Store:
    """A folder of shards and the settings they were made with."""

    path: Path
    settings: Mapping[str, Any]

    @classmethod
    def begin(cls, path: Path, settings: Mapping[str, Any]) -> "Store":
        """A new folder, or one that was begun with the same settings."""
        wanted = json.loads(json.dumps({"version": VERSION, **settings}))
        if path.exists() and not path.is_dir():
            raise ValueError(f"out must be a folder, but {path} is a file")
        path.mkdir(parents=True, exist_ok=True)
        for left in path.glob(LEFTOVERS):
            left.unlink()
        store = cls(path, wanted)
        shards = store.shards()
        if shards:
            there = settings_of(shards[0])
            differ = [key for key in wanted if there.get(key) != wanted[key]]
            if differ:
                told = "; ".join(
                    f"{key} was {_short(there.get(key))}, now {_short(wanted[key])}"
                    for key in differ
                )
                raise ValueError(
                    f"{path} holds another collection ({told}): choose another folder for out, "
                    "or remove this one"
                )
        elif any(path.iterdir()):
            raise ValueError(f"out must be a new or empty folder, but {path} holds other files")
        return store

    def missing(self) -> list[int]:
        """Numbers of the shards that are still to be written."""
        return [k for k in range(self.settings["shards"]) if not self.shard(k).is_file()]

    def shards(self) -> list[Path]:
        """Those that are there, in order."""
        return sorted(self.path.glob(SHARDS))

    def shard(self, k: int) -> Path:
        return self.path / f"part-{k:06d}.parquet"

    def write(self, k: int, block: Block) -> None:
        """Writes one shard, whole or not at all; one without rows needs another to be there."""
        table = _table(block, self.settings) if len(block.index) else self._empty(block)

        def write(part: Path) -> None:
            _pyarrow_parquet().write_table(
                table, part, compression="zstd", write_page_checksum=True
            )

        try:
            write_atomically(self.shard(k), write)
        except OSError as error:
            raise OSError(
                f"cannot write {self.shard(k)}: {error}; what was collected before is kept: "
                "run the same collect again when that is mended"
            ) from error

    def _empty(self, block: Block) -> Any:
        """No rows, in the columns of another shard: nothing else tells how wide they are."""
        shards = self.shards()
        if not shards:
            name, reason = block.skipped[0]
            raise ValueError(f"no image could be decoded; the first is {name}: {reason}")
        nothing = _schema(shards[0]).empty_table()
        return nothing.replace_schema_metadata(_metadata(block, self.settings))

    def skipped(self) -> list[tuple[str, str]]:
        """Name and reason of every image that could not be decoded."""
        found = []
        for k in range(self.settings["shards"]):
            told = json.loads(_schema(self.shard(k)).metadata[SKIPPED])
            found += [(name, reason) for name, reason in told]
        return found


def read(path: Path) -> tuple[Predictions, Labels | None]:
    """All rows of a data set: images as they are first, then shift by shift, in their order."""
    shards = sorted(path.glob(SHARDS))
    if not shards:
        raise ValueError(
            f"{path} holds no {SHARDS}: collect did not write it, or was stopped before it had "
            "anything to write; run the same collect again"
        )
    settings = settings_of(shards[0])
    if "views" not in settings:
        raise ValueError(f"{path} holds scores that apply wrote, not predictions")
    if len(shards) != settings["shards"]:
        raise ValueError(
            f"{path} is unfinished: {len(shards)} of {settings['shards']} shards are there; "
            "run the same collect again to complete it"
        )
    columns: dict[str, list[np.ndarray]] = {}
    for shard in shards:
        if settings_of(shard) != settings:
            raise ValueError(f"{shard} was collected with other settings than {shards[0].name}")
        for name, column in columns_of(shard, settings).items():
            columns.setdefault(name, []).append(column)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.lexsort((joined["index"], joined["shift"]))
    rows = {name: column[order] for name, column in joined.items()}
    labels = rows["label"]
    if (labels < 0).any() and (labels >= 0).any():
        raise ValueError(f"{path} has labels for some images only: give all or none")
    views = settings["views"]
    predictions = Predictions(
        rows["logits"],
        np.stack([rows[f"view_{name}"] for name in views], 1) if views else None,
        rows.get("features"),
        views or None,
        settings["class_names"],
        rows["shift"] if settings["shifts"] else None,
        settings["shifts"],
    )
    if (labels < 0).all():
        return predictions, None
    try:
        return predictions, checked_labels(labels, predictions)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def image_names(path: Path) -> tuple[list[str], np.ndarray, tuple[str, ...]]:
    """The name of the image behind each row that `read` gives, the row's shift, shifts' names."""
    names: list[str] = []
    numbers = []
    shards = sorted(path.glob(SHARDS))
    for shard in shards:
        try:
            table = _pyarrow_parquet().read_table(shard, columns=["index", "name", "shift"])
        except DAMAGE as error:
            raise _damaged(shard, error) from error
        names += table["name"].to_pylist()
        numbers.append(
            np.stack([_array(table[key].combine_chunks()) for key in ("index", "shift")])
        )
    if not numbers:
        raise ValueError(f"{path} holds no {SHARDS}: collect did not write it")
    index, shift = np.concatenate(numbers, 1)  # (2, n)
    order = np.lexsort((index, shift))
    shifts = tuple(settings_of(shards[0])["shifts"])
    return [names[i] for i in order], shift[order], shifts


def columns_of(shard: Path, settings: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns of one shard by name, lists as rows of an array."""
    wanted = ["index", "label", "shift", "logits", *(f"view_{name}" for name in settings["views"])]
    wanted += ["features"] if settings["features"] else []
    try:
        table = _pyarrow_parquet().read_table(
            shard, columns=wanted, page_checksum_verification=True
        )
        return {name: _array(table[name].combine_chunks()) for name in wanted}
    except DAMAGE as error:
        raise _damaged(shard, error) from error


def _array(column: Any) -> np.ndarray:
    """Rows of numbers, with -1 for a label that is not known."""
    if hasattr(column.type, "list_size"):
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    return column.fill_null(-1).to_numpy(zero_copy_only=False)


def _table(block: Block, settings: Mapping[str, Any]) -> Any:
    pa = _pyarrow()
    n = len(block.index)

    def lists(values: np.ndarray) -> Any:
        with np.errstate(over="ignore"):
            stored = values.astype(settings["dtype"])
        if not np.isfinite(stored).all():
            raise ValueError(
                f"values up to {np.abs(values).max():g} do not fit into {settings['dtype']}: "
                "collect with dtype='float32'"
            )
        return pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), values.shape[-1])

    columns = {
        "index": pa.array(block.index, pa.int64()),
        "name": pa.array(block.names, pa.string()),
        "label": pa.array(block.labels if block.labels is not None else [None] * n, pa.int64()),
        "shift": pa.array(block.shift, pa.int32()),
        "logits": lists(block.logits),
    }
    if block.view_logits is not None:
        for i, name in enumerate(settings["views"]):
            columns[f"view_{name}"] = lists(block.view_logits[:, i])
    if block.features is not None:
        columns["features"] = lists(block.features)
    return pa.table(columns).replace_schema_metadata(_metadata(block, settings))


def _metadata(block: Block, settings: Mapping[str, Any]) -> dict[bytes, str]:
    return {KEY: json.dumps(dict(settings)), SKIPPED: json.dumps(block.skipped)}


def _schema(shard: Path) -> Any:
    try:
        return _pyarrow_parquet().read_schema(shard)
    except DAMAGE as error:
        raise _damaged(shard, error) from error


def settings_of(shard: Path) -> dict[str, Any]:
    """The settings in a shard's metadata."""
    metadata = _schema(shard).metadata or {}
    if KEY not in metadata:
        raise ValueError(f"{shard} is Parquet, but was not written by collect")
    try:
        settings: dict[str, Any] = json.loads(metadata[KEY])
    except ValueError as error:
        raise _damaged(shard, error) from error
    if settings.get("version") != VERSION:
        raise ValueError(
            f"{shard} has format version {settings.get('version')}, this rightly reads {VERSION}"
        )
    return settings


def _damaged(shard: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{shard} is damaged ({error}): remove it and run the same collect again to replace it"
    )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet data sets need the package pyarrow: pip install 'rightly[collect]'"
        ) from error
    return pyarrow


def _pyarrow_parquet() -> ModuleType:
    _pyarrow()
    import pyarrow.parquet

    return pyarrow.parquet


def source(folder: Path) -> dict[str, Any] | None:
    """Name, fingerprint and preprocessing of the classifier that a data set was collected from."""
    shards = Store(folder, {}).shards()
    if not shards:
        return None
    settings = settings_of(shards[0])
    return {
        "name": settings.get("model"),
        "fingerprint": settings.get("model_fingerprint"),
        "preprocessing": settings.get("preprocessing"),
    }
