"""Whatever is stored becomes RGB, or is refused by name."""

import pickle
import tracemalloc

import numpy as np
import pytest
import torch
from PIL import Image

from rightly.datasets import UnreadableImage, open_images
from rightly.datasets.decoding import stored_mode, to_image, to_rgb
from tests.datasets.example_sets import put
from tests.without_torch import run_without_torch


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16"])
def test_other_channel_counts_are_converted_and_said_so(tmp_path, mode):
    suffix = "tif" if mode == "CMYK" else "png"
    if mode == "I;16":
        Image.fromarray(np.full((4, 4), 65535 // 2, np.uint16)).save(tmp_path / "a.png")
    else:
        put(tmp_path / f"a.{suffix}", 100, mode)
    picture = open_images(tmp_path).read(0)
    assert picture.mode == "RGB" and stored_mode(picture) == mode
    if mode == "I;16":
        assert picture.getpixel((0, 0)) == (127, 127, 127)


def test_deep_grey_takes_little_memory_and_every_level_is_rounded():
    picture = Image.fromarray(np.arange(2**16, dtype=np.uint16).reshape(2**15, 2).repeat(64, 1))
    tracemalloc.start()
    converted = to_rgb(picture)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Twelve bytes a pixel, for numbers of four in between, make bombs of small files.
    assert peak < 8 * 2**20 + 5 * picture.width * picture.height
    levels = np.asarray(converted)[:, ::64, 0].reshape(-1)
    assert np.array_equal(levels, np.round(np.arange(2**16) / 257).astype(np.uint8))


def test_a_palette_with_transparency_is_converted_without_a_warning(tmp_path):
    picture = Image.new("P", (4, 4))
    picture.putpalette([10, 20, 30] * 256)
    picture.save(tmp_path / "a.png", transparency=bytes([0] * 256))
    assert open_images(tmp_path).read(0).getpixel((1, 1)) == (10, 20, 30)


def test_unreadable_pictures_are_reported_by_name(tmp_path):
    put(tmp_path / "cat" / "good.png")
    (tmp_path / "cat" / "bad.jpg").write_bytes(b"no picture")
    (tmp_path / "cat" / "cut.png").write_bytes((tmp_path / "cat" / "good.png").read_bytes()[:45])
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "cat" / "float.tif")
    images = open_images(tmp_path)
    for i, name in enumerate(images.names):
        if "good" in name:
            assert images.read(i).size == (9, 7)
            continue
        with pytest.raises(UnreadableImage, match=f"{name} cannot be decoded") as error:
            images.read(i)
        assert error.value.name == name and str(tmp_path) not in error.value.reason
        copy = pickle.loads(pickle.dumps(error.value))
        assert (copy.name, copy.reason) == (error.value.name, error.value.reason)


def test_values_of_a_data_set_become_images_alike():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    for value in (pixels, pixels / np.float32(255), torch.from_numpy(pixels).permute(2, 0, 1)):
        assert np.array_equal(to_image(value, "0"), pixels)
    grey = to_image(torch.from_numpy(pixels[None, :, :, 0]), "0")
    assert np.array_equal(np.asarray(grey)[..., 0], pixels[..., 0]) and stored_mode(grey) == "L"


def test_a_server_decodes_images_without_torch(tmp_path):
    put(tmp_path / "a.png", 100, "L")
    code = f"""
from pathlib import Path
from rightly.datasets.decoding import ImageFiles, to_image
image = ImageFiles(Path({str(tmp_path)!r}), ["a.png"])(0)
print(image.mode, to_image(image, "a").size)
"""
    assert run_without_torch(code) == "RGB (9, 7)"
