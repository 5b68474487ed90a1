"""Predictions as a Parquet data set: a folder of shards, one row a sample.

Columns: `image`, a number, and `name` of the image, `label` (null where unknown), `shift`,
`logits`, one `view_NAME` for each view, `features` where they were kept, and `image_hash`;
settings are JSON in the schema's metadata under "rightly". `store.py` writes it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rightly.checks import (
    Schema,
    are_names,
    are_numbers,
    check_table,
    check_version,
    is_count,
    is_flag,
    is_table,
    is_text,
    or_null,
)
from rightly.files import parse_json
from rightly.optional import require
from rightly.predictions.predictions import Predictions, Source
from rightly.predictions.rows import warn_of_counts
from rightly.predictions.validation import check_labels
from rightly.tensor_shapes import Labels

NAME = re.compile(r"part-(\d{6})\.parquet")
SHARDS = "part-*.parquet"  # and nothing beside them: polars refuses a folder with other files
MAX_SHARDS = 10**6  # their names have six digits
VERSION = 2  # 1 called the column `image` `index`
KEY = b"rightly"
SKIPPED = b"rightly.skipped"
NUMBERS = ("image", "label", "shift", "image_hash")  # columns of whole numbers


# What those settings must be that are read again.
SETTINGS: Schema = {
    "shards": ("a number", lambda value: is_count(value) and value <= MAX_SHARDS),
    "views": ("a list of names", are_names),
    "shifts": ("a list of names", are_names),
    "class_names": ("a list of names or null", or_null(are_names)),
    "features": ("true or false", is_flag),
    "image_hash": ("true or false", is_flag),
    "model": ("a name or null", or_null(is_text)),
    "model_fingerprint": ("text or null", or_null(is_text)),
    "image_size": (
        "two numbers or null",
        or_null(lambda value: are_numbers(value, 2) and all(map(is_count, value))),
    ),
    "preprocessing": ("a table or null", or_null(is_table)),
}
ALWAYS = ("shards",)  # scores that apply wrote have no views, shifts and so on
# What pyarrow raises when bytes of a shard are not those that were written.
DAMAGE = (OSError, ValueError, KeyError, TypeError, OverflowError, NotImplementedError)


def read(path: Path) -> tuple[Predictions, Labels | None]:
    """All rows of a data set: images as they are first, then shift by shift, in their order."""
    shards, settings = open_shards(path)
    columns: dict[str, list[np.ndarray]] = {}
    for shard in shards:
        if read_settings(shard) != settings:
            raise ValueError(f"{shard} was collected with other settings than {shards[0].name}")
        for name, column in read_columns(shard, settings).items():
            columns.setdefault(name, []).append(column)
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    doubled = _find_doubled(whole["image"], whole["shift"])
    if doubled is not None:
        raise ValueError(
            f"{path} has image {doubled[0]} under shift {doubled[1]} in two shards, one of which "
            "must be a copy: remove the copy and run the same collect again to replace it"
        )
    order = np.lexsort((whole["image"], whole["shift"]))
    rows = {name: column[order] for name, column in whole.items()}
    labels = rows["label"]
    if (labels < 0).any() and (labels >= 0).any():
        raise ValueError(f"{path} has labels for some images only: give all or none")
    try:
        predictions = make_predictions(rows, settings)
        return predictions, None if (labels < 0).all() else check_labels(labels, predictions)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def make_predictions(columns: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Predictions:
    """The predictions in columns that `read_columns` gave."""
    views = settings["views"]
    return Predictions(
        columns["logits"],
        np.stack([columns[f"view_{name}"] for name in views], 1) if views else None,
        columns.get("features"),
        views or None,
        settings["class_names"],
        columns["shift"] if settings["shifts"] else None,
        settings["shifts"],
        columns["image"],
        columns.get("image_hash"),
        settings.get("model_fingerprint"),
        Source(classifier=describe_classifier(settings)),
    )


def read_image_names(path: Path) -> dict[int, str]:
    """The names of the images in a data set, by their numbers."""
    names: dict[int, str] = {}
    for shard in open_shards(path)[0]:
        try:
            table = _parquet().read_table(
                shard, columns=["image", "name"], page_checksum_verification=True
            )
            found = table["name"].to_pylist()
            if not all(isinstance(name, str) for name in found):
                raise ValueError("its column name holds other things than text")
            numbers = to_array(table["image"].combine_chunks()).tolist()
        except DAMAGE as error:
            raise damage_error(shard, error) from error
        names |= zip(numbers, found, strict=True)
    return names


def describe_classifier(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Name, fingerprint and preprocessing; where no size was asked for, that of the images."""
    preprocessing = settings.get("preprocessing")
    if preprocessing is not None and preprocessing.get("size") is None:
        preprocessing = {**preprocessing, "size": settings.get("image_size")}
    return {
        "name": settings.get("model"),
        "fingerprint": settings.get("model_fingerprint"),
        "preprocessing": preprocessing,
    }


def read_columns(
    shard: Path, settings: Mapping[str, Any], names: list[str] | None = None
) -> dict[str, np.ndarray]:
    """Columns of one shard by name, or all; lists as rows of an array."""
    is_whole = names is None
    if names is None:
        names = [
            "image",
            "label",
            "shift",
            "logits",
            *(f"view_{name}" for name in settings["views"]),
        ]
        names += [name for name in ("features", "image_hash") if settings.get(name)]
    try:
        table = _parquet().read_table(shard, columns=names, page_checksum_verification=True)
        types = require("pyarrow.types", "collect")
        for name in names:
            kind = table[name].type
            if not (
                types.is_signed_integer(kind)
                if name in NUMBERS
                else types.is_fixed_size_list(kind) and types.is_floating(kind.value_type)
            ):
                raise ValueError(f"its column {name} is of type {kind}")
        columns = {name: to_array(table[name].combine_chunks()) for name in names}
        skipped = parse_json((table.schema.metadata or {}).get(SKIPPED, b"[]"))
    except DAMAGE as error:
        raise damage_error(shard, error) from error
    if is_whole:
        _check_rows(shard, columns, settings, skipped if isinstance(skipped, list) else [])
    return columns


def read_settings(shard: Path) -> dict[str, Any]:
    """The settings in a shard's metadata."""
    metadata = read_schema(shard).metadata or {}
    if KEY not in metadata:
        raise ValueError(f"{shard} is Parquet, but was not written by collect")
    try:
        settings: dict[str, Any] = parse_json(metadata[KEY])
        check_table(settings, {}, "settings")
    except ValueError as error:
        raise damage_error(shard, error) from error
    check_version(settings.get("version"), VERSION, shard, "collect again into another folder")
    needed = ALWAYS if "views" not in settings else (*ALWAYS, "shifts", "class_names", "features")
    try:
        check_table(settings, SETTINGS, required=needed)
    except ValueError as error:
        raise damage_error(shard, error) from error
    return settings


def read_schema(shard: Path) -> Any:
    """The columns and the metadata of one shard."""
    try:
        return _parquet().read_schema(shard)
    except DAMAGE as error:
        raise damage_error(shard, error) from error


def damage_error(shard: Path, error: Exception) -> ValueError:
    """The error that names a shard whose bytes are not those that were written."""
    return ValueError(
        f"{shard} is damaged ({error}): remove it and run the same collect again to replace it"
    )


def open_shards(path: Path) -> tuple[list[Path], dict[str, Any]]:
    """All shards of a complete collection, and their settings."""
    shards = list_shards(path)
    if not shards:
        raise ValueError(
            f"{path} holds no {SHARDS}: collect did not write it, or was stopped before it had "
            "anything to write; run the same collect again"
        )
    settings = read_settings(shards[0])
    if "views" not in settings:
        raise ValueError(f"{path} holds scores that apply wrote, not predictions")
    if len(list_shards(path, settings["shards"])) != settings["shards"]:
        raise ValueError(
            f"{path} is unfinished: {len(shards)} of {settings['shards']} shards are there; "
            "run the same collect again to complete it"
        )
    return shards, settings


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


def _check_rows(
    shard: Path,
    columns: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    skipped: Sequence[Any],
) -> None:
    """Refuses a shard whose rows are not those of its images, each under every shift once."""
    image, shift = columns["image"], columns["shift"]
    shown = len(settings["shifts"]) + 1
    first = _find_doubled(image, shift)
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


def _find_doubled(image: np.ndarray, shift: np.ndarray) -> tuple[int, int] | None:
    """An image and a shift that two rows share, if there are any."""
    order = np.lexsort((image, shift))
    same = (np.diff(image[order]) == 0) & (np.diff(shift[order]) == 0)
    if not same.any():
        return None
    row = order[int(np.flatnonzero(same)[0])]
    return int(image[row]), int(shift[row])


def to_array(column: Any) -> np.ndarray:
    """Rows of numbers, with -1 for a missing label."""
    if hasattr(column.type, "list_size"):
        if column.null_count:  # flattened, they would leave fewer rows than there are
            raise ValueError(f"{column.null_count} rows of a column of lists have none")
        return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    return column.fill_null(-1).to_numpy(zero_copy_only=False)


def _parquet() -> Any:
    return require("pyarrow.parquet", "collect")


def read_accuracy(path: Path) -> dict[str, float]:
    """Accuracy of a collected data set by shift, "" for unshifted images; empty without labels.

    Reads shard by shard, and warns if accuracy on the unshifted images is not above chance.
    """
    shards, settings = open_shards(path)
    right, count = Counter[int](), Counter[int]()
    labels_seen, classes_seen = Counter[int](), Counter[int]()
    for shard in shards:
        columns = read_columns(shard, settings, ["label", "shift", "logits"])
        labels, shift = columns["label"], columns["shift"]
        if (labels < 0).any():
            return {}
        if len(labels):
            classes, as_is = columns["logits"].argmax(1), shift == 0
            right.update(shift[classes == labels].tolist())
            count.update(shift.tolist())
            labels_seen.update(labels[as_is].tolist())
            classes_seen.update(classes[as_is].tolist())
    both = sorted({*labels_seen, *classes_seen})
    counts = [np.array([seen[k] for k in both]) for seen in (labels_seen, classes_seen)]
    warn_of_counts(str(path), right[0], *counts)
    names = ("", *settings["shifts"])
    return {names[i]: right[i] / count[i] for i in sorted(count)}
