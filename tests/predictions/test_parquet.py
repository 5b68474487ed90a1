"""What a folder of shards promises to its reader: every row comes back, damage is named."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rightly
from rightly.predictions.parquet import read_image_names
from rightly.predictions.store import Store
from tests.predictions.shards import CLASSES, asked, block_of


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
    np.testing.assert_array_equal(found.image, expected.image)
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


def test_an_unfinished_folder_is_refused_with_the_remedy(tmp_path):
    made = Store.begin(tmp_path / "a", asked())
    with pytest.raises(ValueError, match="holds no part-.*run the same collect again"):
        rightly.load(made.path)
    made.write(1, block_of([3, 4]))
    with pytest.raises(ValueError, match="unfinished: 1 of 2 shards.*run the same collect again"):
        rightly.load(made.path)


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
    [(1, "use the rightly .*, or collect again"), (3, "update rightly, or collect again")],
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


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_every_bit_comes_back(tmp_path_factory, data):
    """Negative zeros and subnormal numbers too, for images of any number."""
    made = Store.begin(tmp_path_factory.mktemp("a") / "b", asked(shards=1, shifts=[]))
    block = block_of([0, 1], asked(shifts=[]))
    values = data.draw(st.lists(st.floats(-9e8, 9e8, width=32), min_size=6, max_size=6))
    logits = np.array(values, np.float32).reshape(2, 3) - np.float32([-0.0, 2, 0])
    image = np.array(sorted(data.draw(st.sets(st.integers(0, 2**63 - 1), min_size=2, max_size=2))))
    if not np.isfinite(logits.sum()):
        return
    made.write(0, replace(block, logits=logits, image=image))
    found, _ = rightly.load(made.path)
    assert found.logits.numpy().tobytes() == logits.tobytes()
    assert found.image.tolist() == image.tolist()


def test_images_have_the_names_that_were_stored_and_damage_is_named(store):
    assert read_image_names(store.path) == {i: f"{i}.png" for i in range(5)}
    store.shard(1).write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="part-000001.parquet is damaged"):
        read_image_names(store.path)


def test_settings_that_are_no_json_are_damage(store):
    table = pyarrow.parquet.read_table(store.shard(0))
    broken = table.replace_schema_metadata({b"rightly": b"{"})
    pyarrow.parquet.write_table(broken, store.shard(0))
    with pytest.raises(ValueError, match="part-000000.parquet is damaged"):
        rightly.load(store.path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([1], "settings must be a table, got"),
        ({"shards": "1"}, "shards must be a number, got 1"),
        ({"shards": 10**12}, "shards must be a number"),
        ({"shards": True}, "shards must be a number"),
        ({"shards": None}, "shards must be a number"),
        ({"views": "rotation"}, "views must be a list of names, got rotation"),
        ({"views": [1, 2]}, "views must be a list of names"),
        ({"shifts": {"jpeg": 1}}, "shifts must be a list of names"),
        ({"class_names": "abc"}, "class_names must be a list of names or null"),
        ({"class_names": [1, 2, 3]}, "class_names must be a list of names or null"),
        ({"features": "no"}, "features must be true or false"),
        ({"model": 5}, "model must be a name or null"),
        ({"preprocessing": [5]}, "preprocessing must be a table or null"),
        ('{"version": 2, "shards": 1, "views": []}', "shifts must be a list of names, got None"),
        ("[" * 50_000, "nested at most 32 deep"),
        ('{"version": NaN}', "must hold numbers"),
        (b"\xff\xfe", "codec can't decode"),
    ],
)
def test_settings_of_other_types_than_written_are_refused(tmp_path, settings, words):
    made = Store.begin(tmp_path / "a", asked(shards=1))
    made.write(0, block_of([0, 1]))
    table = pyarrow.parquet.read_table(made.shard(0))
    if isinstance(settings, dict):
        settings = {"version": 2, **asked(shards=1), **settings}
    text = settings if isinstance(settings, str | bytes) else json.dumps(settings)
    forged = table.replace_schema_metadata({**table.schema.metadata, b"rightly": text})
    pyarrow.parquet.write_table(forged, made.shard(0))
    with pytest.raises(ValueError, match=f"part-000000.parquet is damaged .*{words}"):
        rightly.load(made.path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("image", pyarrow.array(["a"] * 6), "column image is of type string"),
        ("label", pyarrow.array(["a"] * 6), "column label is of type string"),
        ("label", pyarrow.array([0.5] * 6), "column label is of type double"),
        ("shift", pyarrow.array([True] * 6), "column shift is of type bool"),
        (
            "logits",
            pyarrow.array([["a", "b", "c"]] * 6, pyarrow.list_(pyarrow.string(), 3)),
            r"column logits is of type fixed_size_list<.*string>\[3\]",
        ),
        ("logits", pyarrow.array([[1.0, 2.0, 3.0]] * 6), "column logits is of type list<.*double>"),
        ("logits", pyarrow.array([1.0] * 6), "column logits is of type double"),
        ("features", pyarrow.array([None] * 6), "column features is of type null"),
        ("image", pyarrow.array([0] * 6, pyarrow.uint64()), "column image is of type uint64"),
        (
            "logits",
            pyarrow.array([None, *[[1.0, 2, 3]] * 5], pyarrow.list_(pyarrow.float32(), 3)),
            # pyarrow up to 17 refuses such a list itself
            "(1 rows of a column of lists have none|Expected all lists to be of size=3.*)",
        ),
    ],
)
def test_columns_of_other_types_than_written_are_refused(tmp_path, name, values, message):
    made = Store.begin(tmp_path / "a", asked(shards=1))
    made.write(0, block_of([0, 1]))
    table = pyarrow.parquet.read_table(made.shard(0))
    forged = table.set_column(table.column_names.index(name), name, values)
    pyarrow.parquet.write_table(forged, made.shard(0))
    with pytest.raises(ValueError, match=rf"part-000000\.parquet is damaged \((its )?{message}\)"):
        rightly.load(made.path)


@pytest.mark.parametrize(
    "names",
    [
        pyarrow.array([b"\xff"] * 6).view(pyarrow.string()),
        pyarrow.array([None, *"bcdef"]),
        pyarrow.array([1] * 6),
    ],
)
def test_names_of_images_that_are_no_text_are_damage(tmp_path, names):
    made = Store.begin(tmp_path / "a", asked(shards=1))
    made.write(0, block_of([0, 1]))
    table = pyarrow.parquet.read_table(made.shard(0))
    forged = table.set_column(table.column_names.index("name"), "name", names)
    pyarrow.parquet.write_table(forged, made.shard(0))
    with pytest.raises(ValueError, match="part-000000.parquet is damaged"):
        read_image_names(made.path)
