"""Shifts that add noise: what a sensor does in the dark, or a line that drops bits."""

import torch

from rightly.transforms.image_tensors import (
    Images,
    draw_fields,
    promote,
    seed_generators,
    to_images,
)


def gaussian_noise(images: Images, deviation: float, seed: int = 0) -> Images:
    """Normal noise of the same size everywhere."""
    noise = torch.empty(images.shape)
    for one, generator in zip(noise, seed_generators(images, seed), strict=True):
        one.normal_(generator=generator)
    return to_images(promote(images) + deviation * noise.to(images.device), images)


def shot_noise(images: Images, photons: float, seed: int = 0) -> Images:
    """The count of photons that reach each pixel (Poisson), strongest in relation in the dark."""
    counts = (promote(images) * photons).cpu()
    for one, generator in zip(counts, seed_generators(images, seed), strict=True):
        one.copy_(torch.poisson(one, generator))
    return to_images(counts.to(images.device) / photons, images)


def impulse_noise(images: Images, share: float, seed: int = 0) -> Images:
    """A share of the values replaced by 0 or 1, salt and pepper in each channel."""
    draws = draw_fields(images, tuple(images.shape[1:]), seed)
    pepper, salt = draws < share / 2, draws >= 1 - share / 2
    return images.masked_fill(pepper, 0).masked_fill(salt, 1)
