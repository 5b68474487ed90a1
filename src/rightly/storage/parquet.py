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
import torch

from rightly.files import write_whole
from rightly.predictions import Predictions
from rightly.shapes import Labels

VERSION = 1
SETTINGS = "_settings.json"  # readers of Parquet pass over names that begin with _
KEY, SKIPPED = b"rightly", b"rightly.skipped"


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
        begun = path / SETTINGS
        if begun.is_file():
            there = json.loads(begun.read_text())
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
        else:
            text = json.dumps(wanted, indent=1)
            write_whole(begun, lambda part: part.write_text(text))
        for left in path.glob(".part-*.part"):
            left.unlink()  # what a killed run was writing
        return cls(path, wanted)

    def missing(self) -> list[int]:
        """Numbers of the shards that are still to be written."""
        return [k for k in range(self.settings["shards"]) if not self.shard(k).is_file()]

    def shard(self, k: int) -> Path:
        return self.path / f"part-{k:06d}.parquet"

    def write(self, k: int, block: Block) -> None:
        """Writes one shard, whole or not at all."""
        table = _table(block, self.settings)
        try:
            write_whole(
                self.shard(k),
                lambda part: _pyarrow_parquet().write_table(table, part, compression="zstd"),
            )
        except OSError as error:
            raise OSError(
                f"cannot write {self.shard(k)}: {error}; what was collected before is kept: "
                "run the same collect again when that is mended"
            ) from error

    def skipped(self) -> list[tuple[str, str]]:
        """Name and reason of every image that could not be decoded."""
        found = []
        for k in range(self.settings["shards"]):
            metadata = _pyarrow_parquet().read_schema(self.shard(k)).metadata
            found += [(name, reason) for name, reason in json.loads(metadata[SKIPPED])]
        return found


def read(path: Path) -> tuple[Predictions, Labels | None]:
    """All rows of a data set: images as they are first, then shift by shift, in their order."""
    shards = sorted(path.glob("part-*.parquet"))
    if not shards:
        raise ValueError(f"{path} holds no part-*.parquet: it is not a folder that collect wrote")
    settings = _settings_of(shards[0])
    if len(shards) != settings["shards"]:
        raise ValueError(
            f"{path} is unfinished: {len(shards)} of {settings['shards']} shards are there; "
            "run the same collect again to complete it"
        )
    columns: dict[str, list[np.ndarray]] = {}
    for shard in shards:
        if _settings_of(shard) != settings:
            raise ValueError(f"{shard} was collected with other settings than {shards[0].name}")
        for name, column in _columns(shard).items():
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
    return predictions, torch.from_numpy(labels) if (labels >= 0).all() else None


def _columns(shard: Path) -> dict[str, np.ndarray]:
    try:
        table = _pyarrow_parquet().read_table(shard).combine_chunks()
    except (OSError, ValueError) as error:
        raise ValueError(f"{shard} is damaged: {error}") from error
    found = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name == "name":
            continue
        if name == "label":
            column = column.fill_null(-1)
        if hasattr(column.type, "list_size"):
            width = column.type.list_size
            found[name] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        else:
            found[name] = column.to_numpy(zero_copy_only=False)
    return found


def _table(block: Block, settings: Mapping[str, Any]) -> Any:
    pa = _pyarrow()
    n = len(block.index)

    def lists(values: np.ndarray) -> Any:
        flat = pa.array(values.astype(settings["dtype"]).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[-1])

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
    metadata = {KEY: json.dumps(dict(settings)), SKIPPED: json.dumps(block.skipped)}
    return pa.table(columns).replace_schema_metadata(metadata)


def _settings_of(shard: Path) -> dict[str, Any]:
    try:
        metadata = _pyarrow_parquet().read_schema(shard).metadata or {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{shard} is damaged: {error}") from error
    if KEY not in metadata:
        raise ValueError(f"{shard} is Parquet, but was not written by collect")
    settings: dict[str, Any] = json.loads(metadata[KEY])
    if settings.get("version") != VERSION:
        raise ValueError(
            f"{shard} has format version {settings.get('version')}, this rightly reads {VERSION}"
        )
    return settings


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
