"""Shifts that add noise: what a sensor does in the dark, or a line that drops bits."""

import torch

from rightly.transforms.image_tensors import Images, as_images, fields, generators, precise
from rightly.transforms.shifts.severities import strength


def gaussian_noise(images: Images, severity: int, seed: int = 0) -> Images:
    """Normal noise of the same size everywhere."""
    (deviation,) = strength("gaussian_noise", images, severity)
    noise = torch.empty(images.shape)
    for one, generator in zip(noise, generators(images, seed), strict=True):
        one.normal_(generator=generator)
    return as_images(precise(images) + deviation * noise.to(images.device), images)


def shot_noise(images: Images, severity: int, seed: int = 0) -> Images:
    """The count of photons that reach each pixel (Poisson), strongest in relation in the dark."""
    (photons,) = strength("shot_noise", images, severity)
    counts = (precise(images) * photons).cpu()
    for one, generator in zip(counts, generators(images, seed), strict=True):
        one.copy_(torch.poisson(one, generator))
    return as_images(counts.to(images.device) / photons, images)


def impulse_noise(images: Images, severity: int, seed: int = 0) -> Images:
    """A share of the values replaced by 0 or 1, salt and pepper in each channel."""
    (share,) = strength("impulse_noise", images, severity)
    draws = fields(images, tuple(images.shape[1:]), seed)
    pepper, salt = draws < share / 2, draws >= 1 - share / 2
    return images.masked_fill(pepper, 0).masked_fill(salt, 1)
