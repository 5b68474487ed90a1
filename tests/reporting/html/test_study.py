"""What a report is made from, and the pictures of its mistakes."""

import dataclasses
import hashlib

import numpy as np
import pytest
from PIL import Image

from rightly.datasets import UnreadableImage, open_images
from rightly.evaluation.data_sets import load_test_sets
from rightly.evaluation.measurement import BeforeAfter
from rightly.evaluation.results import Result
from rightly.predictions.store import Block, Store
from rightly.reporting.html.study import (
    Example,
    Pictures,
    Provenance,
    Study,
    StudySet,
    make_thumbnail,
)
from rightly.reporting.html.study_sets import find_worst_mistakes
from rightly.reporting.html.summary import name_class
from rightly.reporting.provenance import digest_file, digest_files, read_versions
from tests.conftest import make
from tests.predictions.shards import asked


def make_changes(value=0.1, p=1.0, names=("ece", "brier", "ks", "auroc", "aurc")):
    return {
        name: Result("x", "a", name, value, 0, value - 0.01, value + 0.01, p, p) for name in names
    }


def make_set(n=400, name="a", p=1.0, change=-0.05, seed=0):
    rng = np.random.default_rng(seed)
    predicted, labels = rng.integers(0, 3, n), rng.integers(0, 3, n)
    right = rng.random(n) < 0.7
    labels[right] = predicted[right]
    before = rng.uniform(0.4, 1, n)
    results = BeforeAfter(make_changes(), make_changes(), make_changes(change, p))
    return StudySet(name, before, 0.9 * before, predicted, labels, predicted == labels, results)


def make_study(**changes):
    one = make_set()
    one = dataclasses.replace(one, examples=[Example(row) for row in find_worst_mistakes(one)])
    rows = [Result(x, "a", m, 0.1, 0) for x in ("uncalibrated", "ts") for m in ("brier", "auroc")]
    made = Provenance("rightly report", {"rightly": "0"}, {"cal.npz": "ab"}, 0, 100)
    study = Study("it", "ts", 100, [one], list(make_changes()), made, rows, "uncalibrated")
    return dataclasses.replace(study, **changes)


def test_the_worst_mistakes_are_wrong_and_in_order():
    one = make_set()
    rows = find_worst_mistakes(one)
    assert not one.correct[rows].any()
    assert (np.diff(one.after[rows]) <= 0).all()
    assert one.after[rows[0]] == one.after[~one.correct].max()


@pytest.fixture
def collected(tmp_path):
    """Predictions about pictures in a folder, as they are and under a shift."""
    rng = np.random.default_rng(0)
    names = [f"{'ab'[i % 2]}/{i:02d}.png" for i in range(40)]
    for name in names:
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (200, 160, 3), dtype=np.uint8)).save(file)
    settings = asked(shards=1, views=[], shifts=["blur:1"], class_names=["a", "b"], features=False)
    store = Store.begin(tmp_path / "preds", settings)
    index, shift = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
    labels = index % 2
    logits = rng.normal(size=(80, 2)) + 1.5 * np.eye(2)[labels]
    order = rng.permutation(80)
    block = Block(
        index[order],
        [names[i] for i in index[order]],
        labels[order],
        shift[order],
        logits[order].astype(np.float32),
        None,
        None,
    )
    store.write(0, block)
    return tmp_path, names


def test_pictures_are_those_of_the_rows(collected):
    folder, names = collected
    tests = load_test_sets({"photos": folder / "preds", "t": make()})
    pictures = Pictures.open(folder / "images", tests)
    assert list(pictures.names) == ["photos", "blur:1"]
    example = pictures.find_example("blur:1", 3)
    assert example.name == names[3] and example.picture.startswith("data:image/jpeg;base64,")
    assert pictures.find_example("t", 3) == Example(3) or pictures.find_example("t", 3).name == ""


def test_pictures_that_cannot_be_found_are_told(collected):
    folder, _ = collected
    with pytest.raises(ValueError, match="folders that collect wrote"):
        Pictures.open(folder / "images", {"t": make()})
    other = folder / "other" / "z"
    other.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(other / "q.png")
    with pytest.raises(ValueError, match="none of the images that were collected"):
        Pictures.open(open_images(folder / "other"), load_test_sets({"photos": folder / "preds"}))


def test_an_unreadable_picture_is_left_out(collected):
    folder, names = collected
    (folder / "images" / names[0]).write_bytes(b"no picture")
    images = open_images(folder / "images")
    with pytest.raises(UnreadableImage):
        images.read(images.names.index(names[0]))
    assert make_thumbnail(images, images.names.index(names[0])) == ""


def test_digests_are_of_files_and_whole_folders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    assert digest_file(tmp_path / "a" / "x") == hashlib.sha256(b"1").hexdigest()
    before = digest_file(tmp_path / "a")
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert digest_file(tmp_path / "a") != before
    path = str(tmp_path / "a" / "y")
    assert digest_files([None, path, (1, 2)]) == {path: hashlib.sha256(b"1").hexdigest()}


def test_versions_name_what_computed():
    assert set(read_versions()) == {"rightly", "Python", "torch", "NumPy"}


def test_classes_have_names_or_numbers():
    assert name_class(make_study(), 2) == "2"
    assert name_class(make_study(class_names=("ant", "bee")), np.int64(1)) == "bee"
