"""`rightly.load` of folders: shards written anew with other columns and settings, and others."""

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rightly
from rightly.predictions.files import read_image_names
from rightly.predictions.store import Store
from tests.fuzz.mutators import FLOATS, INTEGERS, WORDS, mutate_bytes, mutate_json, mutate_text
from tests.fuzz.target import Files, Target
from tests.fuzz.targets.npz import check_predictions
from tests.predictions.shards import asked, block_of

CODECS = ("zstd", "snappy", "gzip", "none", "brotli", "lz4")


def make_samples() -> list[Files]:
    samples = []
    for changes in ({}, {"views": [], "shifts": [], "features": False, "dtype": "float16"}):
        plan = asked(**changes)
        with tempfile.TemporaryDirectory() as folder:
            store = Store.begin(Path(folder), plan)
            store.write(0, block_of([0, 1, 2], plan))
            store.write(1, block_of([3, 4], plan))
            samples.append({file.name: file.read_bytes() for file in store.shards()})
    return samples


def mutate(random: Random, samples: list[Files]) -> Files:
    files = dict(random.choice(samples))
    name = random.choice(sorted(files))
    if random.random() < 0.55:
        files[name] = _rewrite(random, files[name])
    if random.random() < 0.5:
        other = random.choice(list(random.choice(samples).values()))
        files[name] = mutate_bytes(random, files[name], other)
    if random.random() < 0.06:
        content = files.pop(name) if random.random() < 0.5 else files[name]
        files[random.choice(("part-000001.parquet", "part-1.parquet", "part-x.parquet"))] = content
    return files


def _rewrite(random: Random, data: bytes) -> bytes:
    """The shard as another writer would make it, with changed columns or settings."""
    table = pq.read_table(pa.BufferReader(data))
    metadata = dict(table.schema.metadata)
    action = random.random()
    if action < 0.35:
        metadata[b"rightly"] = mutate_json(random, json.loads(metadata[b"rightly"]))
    elif action < 0.4:
        metadata[b"rightly.skipped"] = mutate_json(random, [["a.png", "damaged"]])
    else:
        table = _change_column(random, table)
    written = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(metadata),
        written,
        compression=random.choice(CODECS),
        use_dictionary=random.random() < 0.5,
        data_page_version=random.choice(("1.0", "2.0")),
        write_page_checksum=random.random() < 0.8,
        row_group_size=random.choice((1, 3, 1000)),
    )
    return written.getvalue().to_pybytes()


def _change_column(random: Random, table: Any) -> Any:
    name = random.choice(table.column_names)
    at, column = table.column_names.index(name), table[name].combine_chunks()
    action = random.randrange(6)
    if action == 0:
        return table.remove_column(at)
    if action == 1:
        return table.rename_columns(
            [
                random.choice(("logits", mutate_text(random, name), *WORDS)) if one == name else one
                for one in table.column_names
            ]
        )
    if action == 2:
        rows = [random.randrange(table.num_rows) for _ in range(random.choice((0, 1, 9)))]
        return table.take(pa.array(rows, pa.int64()))
    return table.set_column(at, name, _change_values(random, column, action))


def _change_values(random: Random, column: Any, action: int) -> Any:
    """The same number of rows of another type, of other values, or with nulls among them."""
    values = column.to_pylist()
    at = random.randrange(len(values))
    if action == 3:
        values[at] = None
        return pa.array(values, column.type)
    if pa.types.is_fixed_size_list(column.type):
        array = np.array(values, np.float32)
        if action == 4:
            array.flat[random.randrange(array.size)] = random.choice(FLOATS)
            return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        kinds = (
            pa.list_(pa.float32()),
            pa.list_(pa.float64(), array.shape[1]),
            pa.large_list(pa.float16()),
            pa.list_(pa.int32(), array.shape[1]),
            pa.list_(pa.list_(pa.float32(), array.shape[1]), 1),
            pa.list_(pa.string(), array.shape[1]),
            pa.list_(pa.float32(), 0),
        )
        kind = random.choice(kinds)
        try:
            return column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            inner = [[None] * random.choice((0, 1, array.shape[1])) for _ in values]
            return pa.array(inner, pa.list_(pa.float32()))
    if isinstance(values[at], int) and action == 4:
        values[at] = random.choice((*INTEGERS, -1, -(2**63))) % 2**31 * random.choice((1, -1))
        return pa.array(values, column.type)
    kinds = (pa.string(), pa.float64(), pa.int8(), pa.uint64(), pa.bool_(), pa.binary(), pa.null())
    kind = random.choice(kinds)
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None] * len(values), kind)


def read(folder: Path) -> None:
    predictions, labels = rightly.load(folder)
    check_predictions(predictions, labels)
    names = read_image_names(predictions)
    assert names is not None and len(names) == len(predictions)


TARGET = Target("parquet", (ValueError,), make_samples, mutate, read)
