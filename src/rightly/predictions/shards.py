"""The shards of a Parquet data set: their exact names, and which rows belong into each."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

NAME = re.compile(r"part-(\d{6})\.parquet")
SHARDS = "part-*.parquet"  # and nothing beside them: polars refuses a folder with other files
MAX_SHARDS = 10**6  # their names have six digits


def name_shard(k: int) -> str:
    return f"part-{k:06d}.parquet"


def list_shards(path: Path, count: int | None = None) -> list[Path]:
    """The shards that a folder holds, in order; other Parquet files, such as copies, are refused.

    `count` is how many shards there should be: higher numbers are refused too.
    """
    files = sorted(file for file in path.glob("*.parquet") if not file.name.startswith("."))
    for file in files:
        match = NAME.fullmatch(file.name)
        if match is None or (count is not None and int(match[1]) >= count):
            which = (
                name_shard(0) if count is None else f"{name_shard(0)} to {name_shard(count - 1)}"
            )
            raise ValueError(
                f"{path} must hold no other Parquet files than its shards ({which}), but has "
                f"{file.name}: remove it, or move it elsewhere"
            )
    return files


def check_rows(
    shard: Path,
    columns: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    skipped: Sequence[Any],
) -> None:
    """Refuses a shard whose rows are not those of its images, each under every shift once."""
    image, shift = columns["image"], columns["shift"]
    shown = len(settings["shifts"]) + 1
    first = find_doubled(image, shift)
    problem = None
    if first is not None:
        problem = f"has image {first[0]} under shift {first[1]} twice"
    elif len(shift) and not (shift.min() >= 0 and shift.max() < shown):
        problem = f"has shifts from {shift.min()} to {shift.max()}, not 0 to {shown - 1}"
    size, total = settings.get("shard_size"), settings.get("images")
    match = NAME.fullmatch(shard.name)
    if problem is None and match and type(size) is int and type(total) is int:
        start = int(match[1]) * size
        stop = min(start + size, total)
        expected = (stop - start - len(skipped)) * shown
        if len(image) and not (image.min() >= start and image.max() < stop):
            problem = (
                f"has images {image.min()} to {image.max()}, not {start} to {stop - 1}, as if it "
                "were another shard's copy"
            )
        elif len(image) != expected:
            problem = f"has {len(image)} rows, not {expected}"
    if problem:
        raise ValueError(
            f"{shard} {problem}: remove it and run the same collect again to replace it"
        )


def find_doubled(image: np.ndarray, shift: np.ndarray) -> tuple[int, int] | None:
    """An image and a shift that two rows share, if there are any."""
    order = np.lexsort((image, shift))
    same = (np.diff(image[order]) == 0) & (np.diff(shift[order]) == 0)
    if not same.any():
        return None
    row = order[int(np.flatnonzero(same)[0])]
    return int(image[row]), int(shift[row])
