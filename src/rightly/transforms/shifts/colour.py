"""Shifts of colour: light, haze, film and few bits.

Value and saturation are those of HSV. Its hue stays as it is, so both are written without hue:
with V the largest channel and d how far a channel falls short of it, a colour is V (1 - S d).
"""

import torch

from rightly.transforms.image_tensors import Images, as_images, fields, precise
from rightly.transforms.shifts.severities import strength
from rightly.transforms.shifts.warps import smooth


def contrast(images: Images, severity: int, seed: int = 0) -> Images:
    """Every channel drawn towards its mean."""
    (kept,) = strength("contrast", images, severity)
    values = precise(images)
    mean = values.mean((2, 3), keepdim=True)
    return as_images((values - mean) * kept + mean, images)


def brightness(images: Images, severity: int, seed: int = 0) -> Images:
    """The value of HSV raised, up to white."""
    (added,) = strength("brightness", images, severity)
    values = precise(images)
    value = values.amax(1, keepdim=True)
    brighter = (value + added).clamp(max=1)
    # Black has no colour to keep and turns grey.
    return as_images(torch.where(value > 0, values / value * brighter, brighter), images)


def saturation(images: Images, severity: int, seed: int = 0) -> Images:
    """The saturation of HSV changed: severities 1 and 2 fade colours, 3 to 5 make them gaudy."""
    scale, added = strength("saturation", images, severity)
    values = precise(images)
    value = values.amax(1, keepdim=True)
    chroma = value - values.amin(1, keepdim=True)
    new = torch.where(value > 0, chroma / value * scale + added, added).clamp(max=1)
    # Grey has no hue; the published sets give it hue 0, red: green and blue fall short.
    red = values.new_tensor((0, 1, 1))[:, None, None]
    shortfall = torch.where(chroma > 0, (value - values) / chroma, red)
    return as_images(value * (1 - new * shortfall), images)


def posterise(images: Images, severity: int, seed: int = 0) -> Images:
    """Only the first bits of each 8-bit value kept."""
    (bits,) = strength("posterise", images, severity)
    step = 2 ** (8 - int(bits))
    levels = (precise(images) * 255).round()
    return as_images((levels / step).floor() * step / 255, images)


def solarise(images: Images, severity: int, seed: int = 0) -> Images:
    """Bright 8-bit values inverted, as on film lit too long; at severity 5 all: a negative."""
    (least,) = strength("solarise", images, severity)
    values = precise(images)
    return as_images(torch.where((values * 255).round() >= least, 1 - values, values), images)


def haze(images: Images, severity: int, seed: int = 0) -> Images:
    """Light scattered by haze, of uneven brightness, beside what is left of the image's."""
    (scattered,) = strength("haze", images, severity)
    values = precise(images)
    banks = fields(images, (1, 4, 4), seed), fields(images, (1, 8, 8), seed + 1)
    large, small = (smooth(bank.to(values), images) for bank in banks)
    return as_images(values + scattered * (0.6 * large + 0.4 * small - values), images)
