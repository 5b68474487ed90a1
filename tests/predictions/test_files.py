"""One `load` for both formats."""

import shutil

import numpy as np
import pytest

import rightly
from rightly.evaluation.data_sets import load_data_set
from rightly.predictions.files import read_image_names


def test_parts_of_one_folder_show_the_same_images(store):
    once, again = (rightly.load(store.path)[0] for _ in range(2))
    joined = rightly.concatenate([once[once.shift == 0], again[again.shift > 0]])
    np.testing.assert_array_equal(joined.image, once.image)


def test_a_folder_tells_its_classifier_and_an_archive_does_not(store, tmp_path, sample):
    classifier = {"name": "py:mine:model", "fingerprint": None, "preprocessing": None}
    predictions = rightly.load(store.path)[0]
    assert predictions.source.path == str(store.path)
    assert predictions.source.classifier == classifier
    rightly.save(tmp_path / "a.npz", sample[0])
    assert rightly.load(tmp_path / "a.npz")[0].source.classifier is None


def test_parts_keep_the_source_and_the_names_of_their_images(store):
    predictions = rightly.load(store.path)[0]
    part = predictions[[5, 2, 0]].to("cpu")
    assert part.source == part.without_views().source == predictions.source
    names = read_image_names(predictions)
    assert read_image_names(part) == [names[5], names[2], names[0]]
    assert read_image_names(rightly.concatenate([part, predictions])) == [
        *(names[row] for row in (5, 2, 0)),
        *names,
    ]


def test_joined_files_have_their_classifier_in_common_but_no_path(store, tmp_path, sample):
    shutil.copytree(store.path, tmp_path / "copy")
    one, other = (rightly.load(path)[0] for path in (store.path, tmp_path / "copy"))
    joined = rightly.concatenate([one, other])
    assert joined.source.classifier == one.source.classifier
    assert joined.source.path is None and read_image_names(joined) is None


def test_views_are_selected_in_order_or_left_out(tmp_path, sample):
    rightly.save(tmp_path / "a.npz", *sample)
    names = sample[0].view_names
    predictions, _ = rightly.load(tmp_path / "a.npz", views=names[::-1])
    assert predictions.view_names == names[::-1]
    np.testing.assert_array_equal(
        predictions.view_logits, sample[0].with_views(names[::-1]).view_logits
    )
    assert rightly.load(tmp_path / "a.npz", views=())[0].view_logits is None
    with pytest.raises(ValueError, match="views must be some of those collected"):
        rightly.load(tmp_path / "a.npz", views=["none"])


def test_loaded_pairs_stand_for_paths(tmp_path, sample):
    predictions, labels = sample
    np.save(tmp_path / "a.npy", predictions.logits)
    np.save(tmp_path / "labels.npy", labels)
    pair = rightly.load(tmp_path / "a.npy", labels=tmp_path / "labels.npy")
    assert load_data_set(pair)[0] is pair[0]
    with pytest.raises(ValueError, match=r"cal must hold labels .* but .*a.npy has none.*labels="):
        load_data_set(rightly.load(tmp_path / "a.npy"), argument="cal")
