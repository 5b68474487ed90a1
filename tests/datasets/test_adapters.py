"""Data sets of torch and of Hugging Face."""

import numpy as np
import pytest
import torch
from PIL import Image

from rightly.datasets import UnreadableImage, open_images
from rightly.datasets.decoding import stored_mode
from tests.datasets.example_sets import colour, put, rows_of


class Pairs(torch.utils.data.Dataset):
    def __init__(self, pictures, labels):
        self.pictures, self.own, self.reads = pictures, labels, 0

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        self.reads += 1
        return self.pictures[i], self.own[i]


@pytest.mark.parametrize("kind", ["pillow", "bytes", "floats", "array", "grey", "grey plane"])
def test_torch_data_sets_may_yield_any_usual_picture(kind):
    bytes_ = torch.tensor(rows_of(3)).permute(0, 3, 1, 2)
    pictures = {
        "pillow": [Image.fromarray(row) for row in rows_of(3)],
        "bytes": bytes_,
        "floats": bytes_ / 255,
        "array": rows_of(3),
        "grey": bytes_[:, :1],
        "grey plane": bytes_[:, 0],
    }[kind]
    images = open_images(Pairs(pictures, [2, torch.tensor(1), np.int64(0)]))
    assert list(images.labels) == [2, 1, 0] and images.names == ("0", "1", "2")
    picture = images.read(2)
    red, green, blue = colour(2)
    expected = (red,) * 3 if "grey" in kind else (red, green, blue)
    assert tuple(np.asarray(picture)[0, 0]) == expected
    assert stored_mode(picture) == ("L" if "grey" in kind else None)


def test_labels_that_come_with_pictures_are_free_after_reading():
    source = Pairs([Image.new("RGB", (4, 4))] * 5, [4, 3, 2, 1, 0])
    images = open_images(source)
    images.read(1)
    before = source.reads
    assert images.labels[1] == 3 and source.reads == before
    assert images.labels[2] == 2
    assert list(images.labels) == [4, 3, 2, 1, 0]
    with pytest.raises(IndexError):
        images.labels[5]


def test_labels_that_a_data_set_holds_ready_are_used():
    pixels = torch.zeros(6, 3, 4, 4)
    source = torch.utils.data.TensorDataset(pixels, torch.arange(6))
    assert open_images(source).labels == list(range(6))
    subset = torch.utils.data.Subset(source, [5, 3])
    assert open_images(subset).labels == [5, 3]
    held = Pairs(pixels, [1, 1, 0, 0, 1, 0])
    held.targets, held.classes = [1, 1, 0, 0, 1, 0], ["cat", "dog"]
    images = open_images(held)
    assert images.labels == [1, 1, 0, 0, 1, 0] and images.class_names == ("cat", "dog")
    held.targets = [0] * 6  # disagrees with what it yields
    assert list(open_images(held).labels) == [1, 1, 0, 0, 1, 0]


def test_images_without_labels_may_be_given_some():
    pictures = [Image.new("RGB", (4, 4))] * 2
    assert open_images(pictures).labels is None
    assert open_images(pictures, labels=[1, 0]).labels == [1, 0]
    with pytest.raises(ValueError, match="must be left out"):
        open_images(Pairs(pictures, [0, 1]), labels=[1, 0])


def test_the_fingerprint_of_a_data_set_sees_its_pictures():
    black, white = (Image.new("RGB", (4, 4), c) for c in ("black", "white"))
    assert open_images([black, white]).fingerprint != open_images([white, black]).fingerprint
    assert open_images([black, white]).fingerprint == open_images([black, white]).fingerprint


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (
            torch.full((3, 4, 4), 1.5),
            ValueError,
            r"in \[0, 1\] as float, got values from 1.5",
        ),
        (torch.full((3, 4, 4), float("nan")), ValueError, r"must lie in \[0, 1\]"),
        (torch.zeros(3, 4, 4, dtype=torch.int64), TypeError, "uint8 or float"),
        (torch.zeros(5, 4, 4), ValueError, "1, 3 or 4 channels"),
        (np.zeros((3, 4, 4), np.uint8)[:, :, :2], ValueError, "arrays"),
        ("a.png", TypeError, "must be a Pillow image"),
        ({"image": 1}, TypeError, "dictionary"),
        ((torch.zeros(3, 4, 4), 1, 2), TypeError, "got 3 values"),
        ((torch.zeros(3, 4, 4), 0.5), TypeError, "label 0 must be a whole number"),
        ((torch.zeros(3, 4, 4), -1), ValueError, "label 0 must be a class number from 0"),
    ],
)
def test_items_that_are_no_pictures_are_refused(item, error, message):
    with pytest.raises(error, match=message):
        open_images([item]).read(0)


def test_data_sets_without_length_or_content_are_refused():
    with pytest.raises(TypeError, match="data set with a length, got generator"):
        open_images(iter_ for iter_ in [])
    with pytest.raises(ValueError, match="empty data set"):
        open_images([])


def test_a_picture_that_a_data_set_cannot_open_is_unreadable():
    class Broken(Pairs):
        def __getitem__(self, i):
            if i == 1:
                raise OSError("broken data stream")
            return super().__getitem__(i)

    images = open_images(Broken([Image.new("RGB", (4, 4))] * 3, [0, 1, 0]))
    with pytest.raises(UnreadableImage, match="1 cannot be decoded: broken data stream"):
        images.read(1)


class Feature:
    names = ("cat", "dog")


class FakeHuggingFace:
    """The part of datasets.Dataset that is used."""

    def __init__(self, **columns):
        self.columns, self.column_names = columns, list(columns)
        self.features = {"label": Feature()}

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: values[key] for name, values in self.columns.items()}


def test_hugging_face_data_sets_are_read_by_column(tmp_path):
    put(tmp_path / "a.png", 3)
    stored = {"bytes": (tmp_path / "a.png").read_bytes(), "path": None}
    pictures = [Image.new("L", (4, 4), 7), stored, {"bytes": None, "path": str(tmp_path / "a.png")}]
    source = FakeHuggingFace(image=pictures, label=[1, 0, 1])
    images = open_images(source)
    assert list(images.labels) == [1, 0, 1] and images.class_names == ("cat", "dog")
    assert stored_mode(images.read(0)) == "L" and images.read(1).getpixel((0, 0)) == colour(3)
    assert images.read(2).getpixel((0, 0)) == colour(3)
    assert open_images({"test": source}["test"]).fingerprint == images.fingerprint


def test_hugging_face_columns_that_do_not_fit_are_refused():
    picture = [Image.new("RGB", (4, 4))]
    assert open_images(FakeHuggingFace(img=picture)).labels is None
    with pytest.raises(ValueError, match=r"column image or img, got \['photo'\].*rename_column"):
        open_images(FakeHuggingFace(photo=picture))
    with pytest.raises(ValueError, match="got both"):
        open_images(FakeHuggingFace(img=picture, image=picture))
    with pytest.raises(ValueError, match="remove the labels"):
        open_images(FakeHuggingFace(img=picture, label=[-1]))
    with pytest.raises(ValueError, match="split must be left out"):
        open_images(FakeHuggingFace(img=picture), split="test")
    broken = FakeHuggingFace(img=[{"bytes": b"nothing", "path": None}])
    with pytest.raises(UnreadableImage):
        open_images(broken).read(0)


def test_hugging_face_splits_are_chosen_by_name():
    class Splits(dict):
        column_names = {"test": ["img"]}

    splits = Splits(test=FakeHuggingFace(img=[Image.new("RGB", (4, 4))]))
    assert len(open_images(splits, split="test")) == 1
    with pytest.raises(ValueError, match=r"one of \['test'\], got None"):
        open_images(splits)


def test_real_hugging_face_data_sets_are_read():
    datasets = pytest.importorskip("datasets")
    pictures = [Image.new("RGB", (8, 8), colour(i)) for i in range(4)]
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    source = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1, 0]}, features)
    for given in (source, source.cast_column("image", datasets.Image(decode=False))):
        images = open_images(given)
        assert list(images.labels) == [0, 1, 1, 0] and images.class_names == ("cat", "dog")
        assert images.read(3).getpixel((0, 0)) == colour(3)
    splits = datasets.DatasetDict({"test": source})
    assert open_images(splits, split="test").fingerprint == open_images(source).fingerprint
