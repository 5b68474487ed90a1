"""A data set checks its names and labels."""

import pytest
from PIL import Image

from rightly.datasets import ImageDataset, open_images
from tests.datasets.example_sets import make_folders, opened, put


def test_the_fingerprint_tells_sets_apart(tmp_path):
    root, _, _ = make_folders(tmp_path)
    first = open_images(root).fingerprint
    assert open_images(root).fingerprint == first
    others = {
        open_images(root, class_names=("dog", "emu", "cat")).fingerprint,
        open_images(root, layout="flat").fingerprint,
    }
    put(root / "cat" / "0.png", 5, size=(90, 70))
    others.add(open_images(root).fingerprint)
    (root / "cat" / "0.png").rename(root / "cat" / "9.png")
    others.add(open_images(root).fingerprint)
    assert first not in others and len(others) == 4


def test_labels_that_do_not_fit_the_classifier_are_refused(tmp_path):
    root, _, _ = make_folders(tmp_path)
    images = open_images(root)
    images.check_classes(3)
    with pytest.raises(ValueError, match="the set has 3 classes but the classifier 10"):
        images.check_classes(10)
    numbered, _ = opened(tmp_path, "flat")
    numbered.check_classes(10)
    with pytest.raises(ValueError, match=r"0..1 for the 2 classes of the classifier, got 2"):
        numbered.check_classes(2)
    subset, _ = opened(tmp_path, "imagenet-r")
    subset.check_classes(1000)
    with pytest.raises(ValueError, match="up to number 988"):
        subset.check_classes(200)


def test_an_image_set_checks_itself():
    def read(i):
        return Image.new("RGB", (4, 4))

    with pytest.raises(ValueError, match="occur twice: a"):
        ImageDataset(("a", "a"), read)
    with pytest.raises(ValueError, match="one for each of the 2 images, got 1"):
        ImageDataset(("a", "b"), read, [1])
    with pytest.raises(ValueError, match="at least one image"):
        ImageDataset((), read)
    with pytest.raises(ValueError, match="got -1..0"):
        ImageDataset(("a", "b"), read, [-1, 0])
