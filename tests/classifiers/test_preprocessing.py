"""Resize, crop and normalisation."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from rightly.classifiers import Preprocessing
from tests.without_torch import run_without_torch


def test_geometry_resizes_the_shorter_side_and_cuts_the_centre():
    picture = Image.fromarray(np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3))
    cut = Preprocessing(size=(20, 30), resize=40).geometry(picture)
    assert cut.dtype == torch.uint8 and cut.shape == (3, 20, 30)
    assert np.array_equal(cut.permute(1, 2, 0).numpy(), np.asarray(picture)[10:30, 15:45])
    for interpolation in ("bilinear", "bicubic", "nearest", "lanczos"):
        given = Preprocessing((32, 32), 36, interpolation)
        assert given.geometry(picture).shape == (3, 32, 32)
        assert given.geometry(picture.rotate(90, expand=True)).shape == (3, 32, 32)


def test_geometry_without_resize_makes_the_picture_just_large_enough():
    wide = Image.new("RGB", (500, 100))
    assert Preprocessing((50, 50)).geometry(wide).shape == (3, 50, 50)
    assert Preprocessing((50, 400)).geometry(wide).shape == (3, 50, 400)
    same = Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8))
    kept = Preprocessing((8, 8)).geometry(same)
    assert np.array_equal(kept.permute(1, 2, 0).numpy(), np.asarray(same))
    assert Preprocessing().geometry(wide).shape == (3, 100, 500)
    assert Preprocessing(resize=20).geometry(wide).shape == (3, 20, 100)
    assert Preprocessing(resize=(30, 40)).geometry(wide).shape == (3, 30, 40)


@pytest.mark.parametrize("width", range(30, 47))
@pytest.mark.parametrize("size", [(7, 7), (20, 9), (9, 20)])
def test_the_crop_always_fits(width, size):
    picture = Image.new("RGB", (width, 31))
    for resize in (None, 20, 23, (20, 21)):
        assert Preprocessing(size, resize).geometry(picture).shape == (3, *size)


def test_geometry_wants_colour():
    with pytest.raises(ValueError, match="must be in RGB, got mode L"):
        Preprocessing().geometry(Image.new("L", (4, 4)))


def test_preprocessing_survives_json():
    for given in (
        Preprocessing(),
        Preprocessing((224, 192), 256, "bicubic", (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
        Preprocessing((24, 24), (30, 40)),
    ):
        assert Preprocessing.from_dict(json.loads(json.dumps(given.as_dict()))) == given
    with pytest.raises(ValueError, match=r"must have entries of size, .*got crop"):
        Preprocessing.from_dict({"crop": 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interpolation": "cubic"}, "interpolation 'cubic' is not known: did you mean"),
        ({"std": (1.0, 0.0, 1.0)}, "std positive"),
        ({"size": (0, 3)}, "must be positive"),
        ({"size": (32, 32), "resize": 30}, "must fit into an image resized to 30"),
        ({"size": (32, 32), "resize": (40, 31)}, "must fit"),
    ],
)
def test_preprocessing_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**options)


def test_normalisation_is_that_of_the_formula_and_leaves_plain_images_alone():
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert Preprocessing().normalise(images) is images
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    shifted = images.numpy() - np.array(mean, np.float32)[:, None, None]
    expected = shifted / np.array(std, np.float32)[:, None, None]
    assert np.array_equal(Preprocessing(mean=mean, std=std).normalise(images).numpy(), expected)


def test_a_server_resizes_and_crops_without_torch():
    code = """
import numpy as np
from PIL import Image
from rightly.classifiers import MODEL_SPECS, Preprocessing
image = Image.fromarray(np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3))
pixels = Preprocessing(size=(8, 8), resize=10).pixels(image)
print(pixels.shape, pixels.dtype, Preprocessing.from_dict(Preprocessing((8, 8)).as_dict()).size)
"""
    assert run_without_torch(code) == "(8, 8, 3) uint8 (8, 8)"


def test_arrays_are_resized_as_images_are_and_left_alone_where_they_fit():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    preprocessing = Preprocessing((8, 10), 12)
    expected = preprocessing.pixels(Image.fromarray(pixels))
    assert np.array_equal(preprocessing.pixels(pixels), expected)
    assert Preprocessing((20, 30)).pixels(pixels) is pixels
