"""Scores of a Parquet data set, shard by shard, against those of the whole."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import rightly
from rightly import Predictions
from rightly.calibrators import CALIBRATORS
from rightly.collection.ray_cluster import Cluster
from rightly.deployment.batch_inference import ScoringJob, apply
from rightly.predictions.files import read_image_names
from rightly.predictions.store import Block, Store
from tests.conftest import make

SIZE, IMAGES, SHIFTS = 20, 70, 2
SETTINGS = {
    "model": "tiny",
    "class_names": [f"kind {i}" for i in range(10)],
    "views": ["view0", "view1", "view2"],
    "shifts": ["blur"],
    "features": True,
    "dtype": "float32",
    "shards": 4,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Predictions in four shards, of which the third holds no image that could be read."""
    place = tmp_path_factory.mktemp("scoring")
    predictions, labels = make(n=IMAGES * SHIFTS)
    store = Store.begin(place / "preds", SETTINGS)
    for k in (0, 1, 3, 2):
        index = np.arange(k * SIZE, min((k + 1) * SIZE, IMAGES))
        rows = np.concatenate([index, index + IMAGES]) if k != 2 else index[:0]
        block = Block(
            rows % IMAGES,
            [f"{i % IMAGES}.png" for i in rows],
            labels.numpy()[rows],
            rows // IMAGES,
            predictions.logits.numpy()[rows],
            predictions.view_logits.numpy()[rows],
            predictions.features.numpy()[rows],
            () if k != 2 else (("40.png", "damaged"),),
        )
        store.write(k, block)
    return place


def fitted(folder, name):
    path = folder / f"{name}.safetensors"
    predictions, labels = make(n=200, seed=3)
    rightly.calibrator(name).fit(predictions, labels).save(path)
    return path


def rows_of(out):
    """Every row of the scores, in the order of `load`."""
    table = pq.read_table(out)
    return table.sort_by([("shift", "ascending"), ("image", "ascending")])


@pytest.mark.parametrize(
    "name", [name for name, method in CALIBRATORS.items() if not method.fits_classes]
)
def test_shards_are_scored_as_the_whole(folder, tmp_path, name):
    calibrator = fitted(folder, name)
    assert apply(calibrator, folder / "preds", tmp_path / "scores") is None
    rows = rows_of(tmp_path / "scores")
    assert apply(calibrator, folder / "preds", tmp_path / "scores.csv") == len(rows)
    predictions, labels = rightly.load(folder / "preds")
    saved = rightly.load_calibrator(calibrator)
    expected = {
        "label": labels,
        "shift": predictions.shift,
        "predicted_class": saved.classes(predictions),
        "confidence": saved.confidence(predictions),
        "raw_confidence": predictions.confidence,
    }
    if saved.has_temperature:
        expected["temperature"] = saved.temperature(predictions)
    for column, values in expected.items():
        np.testing.assert_allclose(rows[column].to_numpy(), values, rtol=1e-6, atol=1e-6)
    assert rows["class_name"].to_pylist() == [f"kind {i}" for i in saved.classes(predictions)]
    assert rows["name"].to_pylist() == [f"{i}.png" for i in rows["image"].to_pylist()]
    with (tmp_path / "scores.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [int(line["index"]) for line in lines] == list(range(len(predictions)))
    confidence = [float(line["confidence"]) for line in lines]
    np.testing.assert_allclose(confidence, rows["confidence"].to_numpy(), rtol=1e-6)


def test_joined_scores_are_in_the_order_of_load(folder, tmp_path):
    out = tmp_path / "scores"
    with ScoringJob.begin(fitted(folder, "spline"), folder / "preds", out) as scoring:
        score = scoring.open()
        for k in (3, 1, 2, 0):
            score(k)
    joined, rows = scoring.join(), rows_of(out)
    assert joined == rows.to_pydict()
    assert joined["shift"] == sorted(joined["shift"])


def test_one_shard_of_scores_for_each_of_predictions(folder, tmp_path):
    apply(fitted(folder, "spline"), folder / "preds", tmp_path / "scores")
    scores, predictions = sorted((tmp_path / "scores").iterdir()), (folder / "preds").iterdir()
    assert [path.name for path in scores] == sorted(path.name for path in predictions)
    schemas = [pq.read_schema(path) for path in scores]
    assert all(schema.equals(schemas[0]) for schema in schemas)
    assert [pq.read_metadata(path).num_rows for path in scores] == [40, 40, 0, 20]
    assert json.loads(schemas[2].metadata[b"rightly"])["input_model"] == "tiny"


def test_a_run_that_was_stopped_goes_on(folder, tmp_path):
    calibrator, out = fitted(folder, "spline"), tmp_path / "scores"
    apply(calibrator, folder / "preds", out)
    whole = rows_of(out)
    kept = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    (out / "part-000001.parquet").unlink()
    (out / ".part-000001.parquet.123.part").write_text("half")
    assert apply(calibrator, folder / "preds", out) is None
    assert rows_of(out).equals(whole)
    again = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert kept.pop("part-000001.parquet") != again.pop("part-000001.parquet")
    assert kept == again


def test_progress_counts_the_shards_that_are_scored(folder, tmp_path):
    calls = []
    arguments = fitted(folder, "spline"), folder / "preds", tmp_path / "scores"
    apply(*arguments, progress=lambda *step: calls.append(step))
    assert calls == [("applying", done, 4) for done in range(5)]
    calls.clear()
    apply(*arguments, progress=lambda *step: calls.append(step))
    assert calls == [("applying", 0, 0)]


def test_one_file_is_scored_with_the_names_of_its_classes(folder, tmp_path):
    predictions, labels = make(n=30)
    names = [f"kind {i}" for i in range(10)]
    for known in (names, None):
        named = Predictions(predictions.logits, class_names=known)
        rightly.save(tmp_path / "test.npz", named, labels)
        rows = apply(fitted(folder, "spline"), tmp_path / "test.npz", tmp_path / "out.csv")
        with (tmp_path / "out.csv").open() as file:
            lines = list(csv.DictReader(file))
        assert rows == len(lines) == 30
        if known is None:
            assert "class_name" not in lines[0]
        else:
            predicted = [f"kind {line['predicted_class']}" for line in lines]
            assert [line["class_name"] for line in lines] == predicted


def test_workers_are_for_folders(folder, tmp_path):
    rightly.save(tmp_path / "test.npz", *make(n=30))
    with pytest.raises(ValueError, match="cluster is for folders of predictions"):
        apply(
            fitted(folder, "spline"),
            tmp_path / "test.npz",
            tmp_path / "o.csv",
            cluster=Cluster.__new__(Cluster),
        )


def test_another_calibrator_or_input_is_refused(folder, tmp_path):
    calibrator, out = fitted(folder, "spline"), tmp_path / "scores"
    apply(calibrator, folder / "preds", out)
    other = fitted(folder, "temperature_scaling")
    with pytest.raises(ValueError, match="calibrator was spline, now temperature"):
        apply(other, folder / "preds", out)
    moved = tmp_path / "others"
    moved.mkdir()
    for path in (folder / "preds").iterdir():
        table = pq.read_table(path)
        changed = json.dumps({"version": 2, **SETTINGS, "model": "another"})
        table = table.replace_schema_metadata({b"rightly": changed, b"rightly.skipped": "[]"})
        pq.write_table(table, moved / path.name)
    with pytest.raises(ValueError, match="input_model was tiny, now another"):
        apply(calibrator, moved, out)
    with pytest.raises(ValueError, match="other files"):
        apply(calibrator, folder / "preds", folder)
    with pytest.raises(ValueError, match="another collection"):
        apply(calibrator, moved, folder / "preds")


def test_a_shard_of_another_collection_is_refused(folder, tmp_path):
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for path in (folder / "preds").iterdir():
        table = pq.read_table(path)
        if path.name == "part-000003.parquet":
            changed = json.dumps({"version": 2, **SETTINGS, "model": "another"})
            table = table.replace_schema_metadata({b"rightly": changed, b"rightly.skipped": "[]"})
        pq.write_table(table, mixed / path.name)
    with pytest.raises(ValueError, match="was collected with other settings"):
        apply(fitted(folder, "spline"), mixed, tmp_path / "scores")


def test_input_that_is_not_whole_is_refused(folder, tmp_path):
    calibrator, out = fitted(folder, "spline"), tmp_path / "scores"
    half = tmp_path / "half"
    half.mkdir()
    with pytest.raises(ValueError, match="holds no part-"):
        apply(calibrator, half, out)
    for k in (0, 2):
        name = f"part-{k:06d}.parquet"
        (half / name).write_bytes((folder / "preds" / name).read_bytes())
    with pytest.raises(ValueError, match="2 of 4 shards are there"):
        apply(calibrator, half, out)
    apply(calibrator, folder / "preds", out)
    with pytest.raises(ValueError, match="holds scores that apply wrote"):
        apply(calibrator, out, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_does_not_fit_the_calibrator_is_refused_at_once(folder, tmp_path):
    predictions, labels = make(n=100, c=7)
    path = tmp_path / "seven.safetensors"
    rightly.calibrator("spline").fit(predictions, labels).save(path)
    out = tmp_path / "scores"
    with pytest.raises(ValueError, match="must have 7 classes"):
        apply(path, folder / "preds", out)
    assert not out.exists()


def test_another_file_in_place_of_the_calibrator_is_refused(folder, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(fitted(folder, "spline").read_bytes())
    with ScoringJob.begin(path, folder / "preds", tmp_path / "scores") as scoring:
        path.write_bytes(fitted(folder, "temperature_scaling").read_bytes())
        with pytest.raises(ValueError, match="not the calibrator that apply began with"):
            scoring.open()


def test_scores_are_not_taken_for_predictions(folder, tmp_path):
    begun = ScoringJob.begin(fitted(folder, "spline"), folder / "preds", tmp_path / "scores")
    with begun as scoring:
        score = scoring.open()
        for k in scoring.target.missing():
            score(k)
    with pytest.raises(ValueError, match="scores that apply wrote, not predictions"):
        rightly.load(tmp_path / "scores")


@pytest.mark.parametrize("threshold", [None, 0.4])
def test_scores_name_the_image_its_shift_and_whether_to_accept(folder, tmp_path, threshold):
    predictions, labels = rightly.load(folder / "preds")
    saved = tmp_path / "a.safetensors"
    fitted = rightly.fit(predictions, labels, "ts", threshold=threshold)
    fitted.save(saved)
    apply(saved, folder / "preds", tmp_path / "a.csv")
    apply(saved, folder / "preds", tmp_path / "scores")
    with (tmp_path / "a.csv").open() as file:
        lines = list(csv.DictReader(file))
    titles = ["", *predictions.shift_names]
    assert [line["name"] for line in lines] == read_image_names(predictions)
    assert [line["shift"] for line in lines] == [titles[value] for value in predictions.shift]
    assert [int(line["image"]) for line in lines] == predictions.image.tolist()
    rows = rows_of(tmp_path / "scores").to_pydict()
    if threshold is None:
        assert "accept" not in lines[0] and "accept" not in rows
        return
    accept = fitted.accept(predictions).tolist()
    assert [line["accept"] == "True" for line in lines] == accept == rows["accept"]
    assert 0 < sum(accept) < len(accept)
