"""Shifts of colour: light, haze, film and few bits.

Value and saturation are those of HSV. Its hue stays as it is, so both are written without hue:
with V the largest channel and d how far a channel falls short of it, a colour is V (1 - S d).
"""

import torch

from rightly.transforms.image_tensors import Images, draw_fields, promote, to_images
from rightly.transforms.shifts.warps import interpolate_nodes


def contrast(images: Images, kept: float, seed: int = 0) -> Images:
    """Every channel drawn towards its mean."""
    values = promote(images)
    mean = values.mean((2, 3), keepdim=True)
    return to_images((values - mean) * kept + mean, images)


def brightness(images: Images, added: float, seed: int = 0) -> Images:
    """The value of HSV raised, up to white."""
    values = promote(images)
    value = values.amax(1, keepdim=True)
    brighter = (value + added).clamp(max=1)
    # Black has no colour to keep and turns grey.
    return to_images(torch.where(value > 0, values / value * brighter, brighter), images)


def saturation(images: Images, scale: float, added: float, seed: int = 0) -> Images:
    """The saturation of HSV changed: severities 1 and 2 fade colours, 3 to 5 make them gaudy."""
    values = promote(images)
    value = values.amax(1, keepdim=True)
    chroma = value - values.amin(1, keepdim=True)
    new = torch.where(value > 0, chroma / value * scale + added, added).clamp(max=1)
    # Grey has no hue; the published sets give it hue 0, red: green and blue fall short.
    red = values.new_tensor((0, 1, 1))[:, None, None]
    shortfall = torch.where(chroma > 0, (value - values) / chroma, red)
    return to_images(value * (1 - new * shortfall), images)


def posterise(images: Images, bits: float, seed: int = 0) -> Images:
    """Only the first bits of each 8-bit value kept."""
    step = 2 ** (8 - int(bits))
    levels = (promote(images) * 255).round()
    return to_images((levels / step).floor() * step / 255, images)


def solarise(images: Images, least: float, seed: int = 0) -> Images:
    """Bright 8-bit values inverted, as on film lit too long; at severity 5 all: a negative."""
    values = promote(images)
    return to_images(torch.where((values * 255).round() >= least, 1 - values, values), images)


def haze(images: Images, scattered: float, seed: int = 0) -> Images:
    """Light scattered by haze, of uneven brightness, beside what is left of the image's."""
    values = promote(images)
    banks = draw_fields(images, (1, 4, 4), seed), draw_fields(images, (1, 8, 8), seed + 1)
    large, small = (interpolate_nodes(bank.to(values), images) for bank in banks)
    return to_images(values + scattered * (0.6 * large + 0.4 * small - values), images)
