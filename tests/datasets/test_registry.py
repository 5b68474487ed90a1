"""Every layout opens, is recognised where it can be, and says where to get it."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rightly import datasets
from rightly.datasets import LAYOUTS, ImageDataset, Layout, open_images
from rightly.datasets.decoding import ImageFiles, stored_mode
from rightly.datasets.registry import recognise_layout
from rightly.registry import register
from tests.datasets.example_sets import MAKERS, UNMARKED, colour, make_folders, opened, put


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_names_labels_and_pictures(tmp_path, name):
    images, labels = opened(tmp_path, name)
    assert len(images) == len(images.names) == len(labels) == len(set(images.names))
    assert list(images.labels) == labels
    picture = images.read(1)
    assert picture.mode == "RGB" and stored_mode(picture) is None
    expected = colour(2 if name == "iwildcam" else 1)
    jpeg = images.names[1].endswith(("jpg", "JPEG"))
    assert np.allclose(picture.getpixel((4, 3)), expected, atol=8 if jpeg else 0)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_survives_the_way_to_a_worker(tmp_path, name):
    images, _ = opened(tmp_path, name)
    sent = pickle.dumps(images)
    assert len(sent) < 2_000_000  # paths and names, never pixels
    copy = pickle.loads(sent)
    assert copy.fingerprint == images.fingerprint
    assert copy.read(0).tobytes() == images.read(0).tobytes()


@pytest.mark.parametrize("name", LAYOUTS)
def test_missing_data_names_the_place_to_get_it(tmp_path, name):
    place = LAYOUTS[name].where
    with pytest.raises(FileNotFoundError, match="no folder") as error:
        open_images(tmp_path / "nowhere", layout=name)
    assert place in str(error.value)
    if place:
        (tmp_path / "empty").mkdir()
        with pytest.raises(FileNotFoundError) as error:
            open_images(tmp_path / "empty", layout=name)
        assert place in str(error.value)
        (tmp_path / "empty" / "stray.txt").write_text("")
        with pytest.raises((FileNotFoundError, ValueError)):
            open_images(tmp_path / "empty", layout=name)


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - UNMARKED))
def test_unmistakable_layouts_are_recognised(tmp_path, name):
    root, options, labels = MAKERS[name](tmp_path / name)
    assert recognise_layout(root) == name
    assert list(open_images(root, **options).labels) == labels


def test_parts_of_a_set_are_not_taken_for_classes(tmp_path):
    for split in ("train", "val"):
        put(tmp_path / split / "x.png")
    with pytest.raises(ValueError, match="cannot be recognised"):
        open_images(tmp_path)
    assert list(open_images(tmp_path, layout="folders").labels) == [0, 1]


def test_empty_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is empty"):
        open_images(tmp_path)
    put(tmp_path / "cat" / "a.png")
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match="dog holds no images"):
        open_images(tmp_path, layout="folders")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("")
    with pytest.raises(ValueError, match="holds no images"):
        open_images(tmp_path / "text", layout="flat")
    with pytest.raises(ValueError, match="holds no folder"):
        open_images(tmp_path / "text", layout="folders")


def test_an_unknown_layout_is_answered_with_the_one_meant(tmp_path):
    with pytest.raises(ValueError, match="'imagenet' is not known: did you mean imagenet-"):
        open_images(tmp_path, layout="imagenet")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(ValueError, match="cannot be recognised") as error:
        open_images(tmp_path)
    assert all(name in str(error.value) for name in LAYOUTS)


def test_options_without_meaning_are_refused(tmp_path):
    root, _, _ = make_folders(tmp_path)
    with pytest.raises(ValueError, match="severity has no meaning for layout 'folders'"):
        open_images(root, severity=3)
    with pytest.raises(ValueError, match="layout is for folders"):
        open_images([(Image.new("RGB", (4, 4)), 0)], layout="flat")


def test_a_layout_registered_at_run_time_is_recognised_and_opened(tmp_path):
    put(tmp_path / "a.png")
    (tmp_path / "mine.txt").write_text("7")

    def open_mine(root: Path) -> ImageDataset:
        return ImageDataset(("a.png",), ImageFiles(root, ["a.png"]), [7])

    register(Layout("mine", open_mine, lambda root: (root / "mine.txt").is_file(), "an image"))
    try:
        with pytest.raises(ValueError, match="cannot be recognised"):
            open_images(tmp_path)  # flat as well: the user has to say
        assert list(open_images(tmp_path, layout="mine").labels) == [7]
        with pytest.raises(ValueError, match="did you mean mine"):
            open_images(tmp_path, layout="mien")
    finally:
        LAYOUTS.remove("mine")


def test_names_of_the_package_load_when_they_are_used():
    assert datasets.ImageDataset is ImageDataset
    with pytest.raises(AttributeError, match="no attribute 'open_image'"):
        _ = datasets.open_image
