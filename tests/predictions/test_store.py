"""What a folder of shards promises to its writer: half a file is never seen, nothing is mixed."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest

import rightly
from rightly.predictions.store import Block, Store
from tests.predictions.shards import asked, block_of
from tests.processes import run


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_pyarrow_reads_fixed_size_lists_and_the_settings(tmp_path, dtype):
    made = Store.begin(tmp_path / "a", asked(dtype=dtype))
    made.write(0, block_of([0, 1, 2], labelled=False))
    made.write(1, block_of([3, 4], labelled=False))
    table = pyarrow.dataset.dataset(made.path).to_table()
    kind = {"float32": pyarrow.float32(), "float16": pyarrow.float16()}[dtype]
    assert table.num_rows == 15
    assert table.column_names == [
        "image",
        "name",
        "label",
        "shift",
        "logits",
        "view_rotation",
        "view_hflip",
        "features",
    ]
    for name, width in (("logits", 3), ("view_rotation", 3), ("features", 4)):
        assert table.schema.field(name).type == pyarrow.list_(kind, width)
    assert table["label"].null_count == 15
    assert table["name"].to_pylist()[:3] == ["0.png", "1.png", "2.png"]
    stored = json.loads(table.schema.metadata[b"rightly"])
    assert stored == {"version": 2, **asked(dtype=dtype)}


def test_only_shards_lie_in_the_folder(store):
    # polars refuses a folder in which files end differently, even hidden ones.
    names = sorted(path.name for path in store.path.iterdir())
    assert names == ["part-000000.parquet", "part-000001.parquet"]


def test_images_that_were_skipped_are_listed(store):
    assert store.skipped() == [("bad.png", "it is empty")]


def test_a_shard_without_rows_has_the_columns_of_the_others(tmp_path):
    made = Store.begin(tmp_path / "a", asked())
    nothing = np.zeros(0, np.int64)
    empty = Block(nothing, [], None, nothing, np.zeros((0, 0)), None, None, (("a.png", "bad"),))
    with pytest.raises(ValueError, match=r"no image could be decoded; the first is a\.png: bad"):
        made.write(0, empty)
    made.write(1, block_of([3, 4]))
    made.write(0, empty)
    np.testing.assert_array_equal(rightly.load(made.path)[0].logits, block_of([3, 4]).logits)
    assert pyarrow.dataset.dataset(made.path).to_table().num_rows == 6
    assert made.skipped() == [("a.png", "bad")]


def test_missing_shards_are_named_and_a_store_goes_on_where_it_was(tmp_path):
    made = Store.begin(tmp_path / "a", asked(shards=3))
    assert made.missing() == [0, 1, 2]
    made.write(1, block_of([1]))
    again = Store.begin(tmp_path / "a", asked(shards=3))
    assert again.missing() == [0, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"views": ["rotation"]}, r"views was \['rotation', 'hflip'\], now \['rotation'\]"),
        ({"model": "timm:other"}, "model was py:mine:model, now timm:other"),
        ({"images_fingerprint": "def"}, "images_fingerprint was abc, now def"),
        ({"shards": 3, "dtype": "float16"}, "dtype was float32, now float16; shards was 2, now 3"),
    ],
)
def test_other_settings_are_refused_by_name(store, changes, words):
    before = {path: path.read_bytes() for path in store.path.iterdir()}
    with pytest.raises(ValueError, match=words):
        Store.begin(store.path, asked(**changes))
    assert {path: path.read_bytes() for path in store.path.iterdir()} == before


def test_a_run_that_stored_nothing_binds_nobody(tmp_path):
    Store.begin(tmp_path / "a", asked())
    assert Store.begin(tmp_path / "a", asked(views=[])).missing() == [0, 1]


def test_values_too_large_for_float16_are_refused_before_they_are_stored(tmp_path):
    made, block = Store.begin(tmp_path / "a", asked(dtype="float16")), block_of([0, 1])
    with pytest.raises(ValueError, match="100000 do not fit into float16.*dtype='float32'"):
        made.write(0, replace(block, features=block.features * 0 + 1e5))
    assert not list(made.path.iterdir())


def test_what_a_killed_writer_left_is_removed(store):
    left = store.path / ".part-000001.parquet.4711.part"
    left.write_bytes(store.shard(1).read_bytes()[:100])
    store.shard(1).unlink()
    again = Store.begin(store.path, asked())
    assert not left.exists()
    again.write(1, block_of([3, 4]))
    assert len(rightly.load(store.path)[0]) == 15


def test_a_run_killed_during_its_first_write_can_begin_again(tmp_path):
    left = tmp_path / "a" / ".part-000000.parquet.4711.part"
    left.parent.mkdir()
    left.write_bytes(b"PAR1")
    assert Store.begin(tmp_path / "a", asked()).missing() == [0, 1]
    assert not list(left.parent.iterdir())


def test_a_full_disk_leaves_no_half_file_and_a_clear_message(tmp_path, monkeypatch):
    made = Store.begin(tmp_path / "a", asked())
    made.write(0, block_of([0, 1, 2]))

    def full(table, where, **others):
        Path(where).write_bytes(b"PAR1 and then nothing")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(pyarrow.parquet, "write_table", full)
        with pytest.raises(OSError, match="part-000001.parquet.*No space left.*run the same"):
            made.write(1, block_of([3, 4]))
    assert [path.name for path in made.path.iterdir()] == ["part-000000.parquet"]
    again = Store.begin(made.path, asked())
    assert again.missing() == [1]
    again.write(1, block_of([3, 4]))
    assert len(rightly.load(made.path)[0]) == 15


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 64 KiB, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    if run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]).returncode:
        pytest.skip("mount is not permitted here")
    yield place
    run(["umount", place], check=True)


def test_a_disk_that_is_really_full_is_survived(tiny_disk):
    made = Store.begin(tiny_disk / "a", asked())
    made.write(0, block_of([0, 1, 2]))
    filler = tiny_disk / "filler"
    filler.write_bytes(bytes(48 * 1024))
    large = block_of(range(3, 3000))
    with pytest.raises(OSError, match="part-000001.parquet.*run the same command again to resume"):
        made.write(1, large)
    assert [path.name for path in made.path.iterdir()] == ["part-000000.parquet"]
    filler.unlink()
    again = Store.begin(made.path, asked())
    again.write(1, block_of([3, 4]))
    np.testing.assert_array_equal(rightly.load(made.path)[0].logits, block_of(range(5)).logits)
