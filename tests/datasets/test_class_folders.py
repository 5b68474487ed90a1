"""A folder per class."""

import pytest

from rightly.datasets import open_images
from rightly.datasets.class_folders import label_by_folder
from tests.datasets.example_sets import make_folders, put


def test_folders_follow_the_order_of_class_names(tmp_path):
    make_folders(tmp_path)
    images = open_images(tmp_path, class_names=("emu", "dog", "yak", "cat"))
    assert list(images.labels) == [3, 1, 1, 0]
    with pytest.raises(ValueError, match="name every folder.*emu"):
        open_images(tmp_path, class_names=("dog", "cat"))


def test_folders_may_lie_in_a_split_and_below_each_other(tmp_path):
    put(tmp_path / "val" / "cat" / "deep" / "a.png")
    put(tmp_path / "val" / "dog" / "b.PNG")
    put(tmp_path / "val" / "dog" / ".hidden.png")
    images = open_images(tmp_path, layout="folders", split="val")
    assert images.names == ("cat/deep/a.png", "dog/b.PNG")
    with pytest.raises(ValueError, match=r"split must be one of \['val'\].*got 'test'"):
        open_images(tmp_path, layout="folders", split="test")


def test_folders_numbered_without_leading_zeros_are_not_sorted_as_text(tmp_path):
    for i in range(12):
        put(tmp_path / str(i) / "a.png", i)
    with pytest.raises(ValueError, match="do not count up one by one"):
        open_images(tmp_path)
    images = open_images(tmp_path, class_names=[str(i) for i in range(12)])
    assert dict(zip(images.names, images.labels, strict=True))["10/a.png"] == 10


def test_numbered_folders_with_a_gap_are_refused(tmp_path):
    for name in ("0003", "0004", "0006"):
        put(tmp_path / name / "a.png")
    with pytest.raises(ValueError, match="layout='imagenet-val'"):
        open_images(tmp_path)
    assert list(open_images(tmp_path, layout="imagenet-val").labels) == [3, 4, 6]
    put(tmp_path / "0005" / "a.png")
    assert list(open_images(tmp_path).labels) == [0, 1, 2, 3]


def test_images_are_in_the_order_of_their_folders_whatever_the_order_of_classes(tmp_path):
    for i, name in enumerate("abba"):
        put(tmp_path / name / f"{i}.png", i)
    images = label_by_folder(tmp_path, {"b": 0, "a": 1}, ["b", "a"])
    assert list(images.names) == sorted(images.names)
    assert list(images.labels) == [int(name.startswith("a")) for name in images.names]
