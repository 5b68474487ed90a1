"""What a folder of shards promises: every row comes back, and half a file is never seen."""

import errno
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rightly
from rightly.predictions.store import Block, Store

CLASSES, VIEWS, SHIFTS = 3, ("rotation", "hflip"), ("contrast:2", "jpeg")


def asked(**changes):
    return {
        "model": "py:mine:model",
        "images_fingerprint": "abc",
        "views": list(VIEWS),
        "shifts": list(SHIFTS),
        "features": True,
        "class_names": ["ant", "bee", "cow"],
        "dtype": "float32",
        "shards": 2,
    } | changes


def block_of(rows, plan=None, labelled=True, skipped=()):
    """Rows that depend on image and shift alone, so that each is known wherever it turns up."""
    plan = plan or asked()
    shown = len(plan["shifts"]) + 1
    index, shift = np.tile(np.asarray(rows), shown), np.repeat(np.arange(shown), len(rows))
    key = (10 * index + shift)[:, None]
    columns = np.arange(CLASSES)
    logits = np.sin(key + columns).astype(np.float32)
    views = [np.sin(key + columns + 100 * (i + 1)) for i in range(len(plan["views"]))]
    return Block(
        index,
        [f"{i}.png" for i in index],
        index % CLASSES if labelled else None,
        shift,
        logits,
        np.stack(views, 1).astype(np.float32) if views else None,
        np.cos(key + np.arange(4)).astype(np.float32) if plan["features"] else None,
        tuple(skipped),
    )


@pytest.fixture
def store(tmp_path):
    """Five images in two shards, of which the second was written first."""
    made = Store.begin(tmp_path / "preds", asked())
    made.write(1, block_of([3, 4], skipped=[("bad.png", "it is empty")]))
    made.write(0, block_of([0, 1, 2]))
    return made


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"views": []},
        {"shifts": []},
        {"features": False, "class_names": None},
        {"views": ["blur"], "shifts": [], "features": False},
    ],
)
def test_everything_that_is_written_is_read(tmp_path, dtype, labelled, changes):
    plan = asked(dtype=dtype, **changes)
    made = Store.begin(tmp_path / "a", plan)
    made.write(0, block_of([0, 1, 2], plan, labelled))
    made.write(1, block_of([3, 4], plan, labelled))
    found, labels = rightly.load(tmp_path / "a")
    expected = block_of(range(5), plan, labelled)

    def stored(values):
        return None if values is None else values.astype(dtype).astype(np.float32)

    assert found.logits.dtype == torch.float32
    np.testing.assert_array_equal(found.logits, stored(expected.logits))
    for name in ("view_logits", "features"):
        if getattr(expected, name) is None:
            assert getattr(found, name) is None
        else:
            np.testing.assert_array_equal(getattr(found, name), stored(getattr(expected, name)))
    assert found.view_names == tuple(plan["views"])
    assert found.shift_names == tuple(plan["shifts"])
    assert found.class_names == (plan["class_names"] and tuple(plan["class_names"]))
    assert (found.shift is None) == (not plan["shifts"])
    if labelled:
        np.testing.assert_array_equal(labels, expected.labels)
    else:
        assert labels is None


def test_rows_are_read_image_by_image_within_each_shift(store):
    found, labels = rightly.load(store.path)
    np.testing.assert_array_equal(found.shift, np.repeat([0, 1, 2], 5))
    np.testing.assert_array_equal(labels, np.tile(np.arange(5) % CLASSES, 3))
    np.testing.assert_array_equal(found.logits, block_of(range(5)).logits)


def test_rows_of_one_shard_may_come_in_any_order(tmp_path):
    made, block = Store.begin(tmp_path / "a", asked(shards=1)), block_of(range(4))
    order = np.random.default_rng(0).permutation(len(block.image))
    rows = {
        name: getattr(block, name)[order]
        for name in ("image", "labels", "shift", "logits", "view_logits", "features")
    }
    made.write(0, replace(block, names=[block.names[i] for i in order], **rows))
    np.testing.assert_array_equal(rightly.load(made.path)[0].logits, block.logits)


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


def test_pandas_reads_the_folder(store):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(store.path).sort_values(["shift", "image"])
    np.testing.assert_array_equal(np.stack(list(frame["logits"])), block_of(range(5)).logits)
    assert list(frame["label"][:5]) == [0, 1, 2, 0, 1]


def test_polars_reads_the_folder(store):
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(store.path).sort("shift", "image")
    np.testing.assert_array_equal(frame["logits"].to_numpy(), block_of(range(5)).logits)


def test_duckdb_reads_the_folder(store):
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(
        f"select view_hflip from '{store.path}/*.parquet' order by shift, image"
    ).fetchall()
    expected = block_of(range(5)).view_logits[:, 1]
    np.testing.assert_array_equal(np.array(rows, np.float32)[:, 0], expected)


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


def test_an_unfinished_folder_is_refused_with_the_remedy(tmp_path):
    made = Store.begin(tmp_path / "a", asked())
    with pytest.raises(ValueError, match="holds no part-.*run the same collect again"):
        rightly.load(made.path)
    made.write(1, block_of([3, 4]))
    with pytest.raises(ValueError, match="unfinished: 1 of 2 shards.*run the same collect again"):
        rightly.load(made.path)


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


def test_shards_of_two_collections_are_never_mixed(store, tmp_path):
    other = Store.begin(tmp_path / "other", asked(model="timm:other"))
    other.write(1, block_of([3, 4]))
    other.shard(1).replace(store.shard(1))
    with pytest.raises(ValueError, match=r"part-000001.parquet was collected with other settings"):
        rightly.load(store.path)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not lose")
    with pytest.raises(ValueError, match="must be a new or empty folder"):
        Store.begin(tmp_path, asked())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="must be a folder, but .*thesis.tex is a file"):
        Store.begin(tmp_path / "thesis.tex", asked())
    with pytest.raises(ValueError, match="holds no part-"):
        rightly.load(tmp_path)


def test_parquet_of_others_is_refused(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "part-000000.parquet")
    with pytest.raises(ValueError, match="was not written by collect"):
        rightly.load(tmp_path)
    with pytest.raises(ValueError, match="was not written by collect"):
        Store.begin(tmp_path, asked())


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(1, "collect again into another folder"), (3, "update rightly, or collect again")],
)
def test_shards_of_another_format_are_refused_with_the_remedy(tmp_path, version, remedy):
    settings = {**asked(shards=1), "version": version}
    Store(tmp_path, settings).write(0, block_of([0]))
    for failing in (
        lambda: rightly.load(tmp_path),
        lambda: read_image_names(tmp_path),
        lambda: Store.begin(tmp_path, asked(shards=1)),
    ):
        with pytest.raises(ValueError, match=f"format version {version}, .* reads 2: {remedy}"):
            failing()


def test_labels_for_some_images_only_are_refused(tmp_path):
    made = Store.begin(tmp_path / "a", asked())
    made.write(0, block_of([0, 1, 2]))
    made.write(1, block_of([3, 4], labelled=False))
    with pytest.raises(ValueError, match="has labels for some images only"):
        rightly.load(made.path)


def test_stored_labels_beyond_the_classes_are_refused(tmp_path):
    made = Store.begin(tmp_path / "a", asked(shards=1))
    made.write(0, replace(block_of([0]), labels=np.array([3, 3, 3])))
    with pytest.raises(ValueError, match=r"a: labels must lie in 0\.\.2"):
        rightly.load(made.path)


def test_values_too_large_for_float16_are_refused_before_they_are_stored(tmp_path):
    made, block = Store.begin(tmp_path / "a", asked(dtype="float16")), block_of([0, 1])
    with pytest.raises(ValueError, match="100000 do not fit into float16.*dtype='float32'"):
        made.write(0, replace(block, features=block.features * 0 + 1e5))
    assert not list(made.path.iterdir())


@pytest.mark.parametrize("damage", ["empty", "truncated", "text", "no footer"])
def test_a_damaged_shard_is_named(store, damage):
    whole = store.shard(1).read_bytes()
    store.shard(1).write_bytes(
        {
            "empty": b"",
            "truncated": whole[: len(whole) // 2],
            "text": b"index,logits\n" * 9,
            "no footer": whole[:-4],
        }[damage]
    )
    for failing in (lambda: rightly.load(store.path), store.skipped):
        with pytest.raises(ValueError, match=r"part-000001.parquet is damaged .*remove it and run"):
            failing()
    store.shard(1).unlink()
    assert Store.begin(store.path, asked()).missing() == [1]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_changed_byte_never_changes_a_number(store, data):
    whole = block_of(range(5))
    kept = store.shard(0).read_bytes()
    changed = bytearray(kept)
    footer = int.from_bytes(kept[-8:-4], "little")  # names and places; the numbers lie before it
    changed[data.draw(st.integers(0, len(kept) - 9 - footer))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        store.shard(0).write_bytes(changed)
        found, labels = rightly.load(store.path)
    except ValueError as error:
        assert "part-000000.parquet is damaged" in str(error)
    else:
        np.testing.assert_array_equal(found.logits, whole.logits)
        np.testing.assert_array_equal(found.view_logits, whole.view_logits)
        np.testing.assert_array_equal(found.features, whole.features)
        np.testing.assert_array_equal(labels, whole.labels)
    finally:
        store.shard(0).write_bytes(kept)


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
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if mounted.returncode:
        pytest.skip("mount is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


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
