"""Shifts of colour follow their formulas."""

import colorsys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rightly.transforms.shifts import SHIFTS
from tests.transforms.example_images import every_severity, photos


def pixel_by_pixel(images: Tensor, change: Callable[..., tuple[float, ...]]) -> np.ndarray:
    """Each colour changed by a function of its hue, saturation and value."""
    colours = images.permute(0, 2, 3, 1).double().numpy().reshape(-1, 3)
    changed = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*colour))) for colour in colours]
    n, _, h, w = images.shape
    return np.array(changed).reshape(n, h, w, 3).transpose(0, 3, 1, 2)


@every_severity
def test_contrast_brightness_and_saturation_follow_their_formulas(severity: int) -> None:
    images = photos(2, 24, 20)
    images[0, :, 0, :4] = torch.tensor([0.0, 0.5, 1.0, 0.25])  # black, greys and white
    (kept,) = SHIFTS["contrast"].strength(severity, 32)
    mean = images.double().mean((2, 3), keepdim=True)
    expected = (mean + kept * (images - mean)).numpy()
    assert np.abs(SHIFTS["contrast"](images, severity, 0).numpy() - expected).max() < 1e-6
    (added,) = SHIFTS["brightness"].strength(severity, 32)
    expected = pixel_by_pixel(images, lambda h, s, v: (h, s, min(1, v + added)))
    assert np.abs(SHIFTS["brightness"](images, severity, 0).numpy() - expected).max() < 1e-6
    scale, more = SHIFTS["saturation"].strength(severity, 32)
    expected = pixel_by_pixel(images, lambda h, s, v: (h, min(1, s * scale + more), v))
    assert np.abs(SHIFTS["saturation"](images, severity, 0).numpy() - expected).max() < 1e-6


@every_severity
def test_haze_takes_its_share_of_the_light(severity: int) -> None:
    black = torch.zeros(6, 3, 40, 50)
    black[:, 2, 0, 0] = torch.arange(6) / 255
    white = 1 - black
    (scattered,) = SHIFTS["haze"].strength(severity, 32)
    for images in (black, white):
        hazy = SHIFTS["haze"](images, severity, 0)
        banks = (hazy - (1 - scattered) * images) / scattered
        torch.testing.assert_close(banks[:, 0], banks[:, 1])  # grey
        assert 0.3 < banks.mean() < 0.7 and banks.std() > 0.1
        assert banks.diff(dim=3)[:, 0].abs().max() < 0.2  # without edges
