"""One `load` for both formats."""

import numpy as np

import rightly
from rightly.predictions import read_source


def test_parts_of_one_folder_show_the_same_images(store):
    once, again = (rightly.load(store.path)[0] for _ in range(2))
    joined = rightly.concatenate([once[once.shift == 0], again[again.shift > 0]])
    np.testing.assert_array_equal(joined.image, once.image)


def test_a_folder_tells_its_classifier_and_an_archive_does_not(store, tmp_path, sample):
    assert read_source(store.path) == {
        "name": "py:mine:model",
        "fingerprint": None,
        "preprocessing": None,
    }
    rightly.save(tmp_path / "a.npz", sample[0])
    assert read_source(tmp_path / "a.npz") is None
    (tmp_path / "empty").mkdir()
    assert read_source(tmp_path / "empty") is None
