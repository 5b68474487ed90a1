"""What Pillow does too is what Pillow does."""

from io import BytesIO

import numpy as np
import pytest
import torch

from rightly.transforms.shifts import SHIFTS
from tests.transforms.example_images import every_severity, photos


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (91, 224)])
def test_jpeg_is_pillows(severity: int, size: tuple[int, int]) -> None:
    from PIL import Image

    images = photos(1, *size)
    file = BytesIO()
    pixels = (images[0] * 255).byte().permute(1, 2, 0).numpy()
    (quality,) = SHIFTS["jpeg"].strength(severity, min(size))
    Image.fromarray(pixels).save(file, "JPEG", quality=int(quality))
    expected = np.asarray(Image.open(file)).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["jpeg"](images, severity, 0)[0].numpy() - expected).max() < 1e-6


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (224, 224), (91, 75), (33, 47)])
def test_pixelate_posterise_and_solarise_are_pillows(severity: int, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    operations = pytest.importorskip("PIL.ImageOps")
    images = photos(1, *size)
    picture = image.fromarray((images[0] * 255).byte().permute(1, 2, 0).numpy())
    h, w = size
    (kept,) = SHIFTS["pixelate"].strength(severity, min(size))
    few = picture.resize((int(w * kept), int(h * kept)), image.Resampling.BOX)
    expected = np.asarray(few.resize((w, h), image.Resampling.BOX)).transpose(2, 0, 1) / 255
    # Pillow rounds to 8 bits after each of its two passes.
    difference = SHIFTS["pixelate"](images, severity, 0)[0].numpy() - expected
    assert np.abs(difference).max() <= 1.01 / 255
    (bits,) = SHIFTS["posterise"].strength(severity, 32)
    expected = np.asarray(operations.posterize(picture, int(bits))).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["posterise"](images, severity, 0)[0].numpy() - expected).max() < 1e-6
    (least,) = SHIFTS["solarise"].strength(severity, 32)
    expected = np.asarray(operations.solarize(picture, int(least))).transpose(2, 0, 1) / 255
    assert np.abs(SHIFTS["solarise"](images, severity, 0)[0].numpy() - expected).max() < 1e-6


def test_sketch_draws_dark_lines_on_white() -> None:
    images = torch.full((1, 3, 32, 32), 0.2)
    images[..., 16:] = 0.8
    drawing = SHIFTS["sketch"](images, 5, 0)
    assert torch.allclose(drawing[..., 15:17], torch.tensor(0.0), atol=1e-6)
    assert torch.allclose(drawing[..., :15], torch.tensor(1.0), atol=1e-6)
    assert torch.equal(
        SHIFTS["sketch"](torch.full((1, 3, 9, 9), 0.3), 5, 0), torch.ones(1, 3, 9, 9)
    )
