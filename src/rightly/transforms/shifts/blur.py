"""Shifts that blur: by soft optics, a lens out of focus, a moving camera or frosted glass."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from rightly.transforms.image_tensors import Images, draw_fields, draw_uniforms, promote, to_images


def gaussian_blur(images: Images, deviation: float, seed: int = 0) -> Images:
    """A Gaussian blur, the border repeated outwards, cut at 4 standard deviations as published."""
    values = promote(images)
    radius = int(4 * deviation + 0.5)
    bell = gaussian_kernel(radius, deviation).to(values).expand(3, 1, -1)
    values = F.pad(values, (radius,) * 4, mode="replicate")
    values = F.conv2d(values, bell[:, :, :, None], groups=3)
    return to_images(F.conv2d(values, bell[:, :, None, :], groups=3), images)


def defocus_blur(images: Images, radius: float, edge: float, seed: int = 0) -> Images:
    """Each point spread over a disc, as by a lens out of focus."""
    values = promote(images)
    kernel = disc_kernel(radius, edge).to(values)
    values = F.pad(values, (kernel.shape[0] // 2,) * 4, mode="reflect")
    return to_images(F.conv2d(values, kernel.expand(3, 1, -1, -1), groups=3), images)


def motion_blur(images: Images, radius: float, deviation: float, seed: int = 0) -> Images:
    """A smear that fades along one direction, within 45 degrees of level, drawn for each image.

    Like ImageMagick's, which the published sets use: half a bell over 2 radius + 1 whole pixels.
    """
    length = 2 * int(radius) + 1
    fade = gaussian_kernel(length - 1, deviation)[length - 1 :]
    weights = (fade / fade.sum()).tolist()
    angles = (draw_uniforms(images, 1, seed)[:, 0] - 0.5) * (math.pi / 2)
    values = promote(images)
    h, w = values.shape[2:]
    padded = F.pad(values, (0, length, length, length), mode="replicate")
    smeared = torch.zeros_like(values)
    for image, result, angle in zip(padded, smeared, angles.tolist(), strict=True):
        for step, weight in enumerate(weights):
            right = round(step * math.cos(angle))
            down = length + round(step * math.sin(angle))
            result.add_(image[:, down : down + h, right : right + w], alpha=weight)
    return to_images(smeared, images)


def glass(images: Images, deviation: float, reach: int, times: int, seed: int = 0) -> Images:
    """Pixels taken from up to `reach` pixels away, so often, between two Gaussian blurs.

    The published glass blur swaps neighbours one after the other; here each pixel is displaced on
    its own, which moves pixels as far and runs on any device.
    """
    values = gaussian_blur(promote(images), deviation)
    n, _, h, w = values.shape
    rows = torch.arange(h, device=values.device)[:, None]
    columns = torch.arange(w, device=values.device)
    draws = draw_fields(images, (times, 2, h, w), seed)
    for step in range(times):
        # From -reach to reach - 1, as published.
        down, right = ((2 * reach * draws[:, step]).floor() - reach).long().unbind(1)
        place = (rows + down).clamp(0, h - 1) * w + (columns + right).clamp(0, w - 1)
        index = place.reshape(n, 1, h * w).expand(-1, 3, -1)
        values = values.flatten(2).gather(2, index).reshape(values.shape)
    return to_images(gaussian_blur(values, deviation), images)


def gaussian_kernel(radius: int, deviation: float) -> Float[Tensor, " k"]:
    """A bell over whole pixels that sums to 1."""
    places = torch.arange(-radius, radius + 1, dtype=torch.float64)
    bell = (-0.5 * (places / deviation) ** 2).exp()
    return bell / bell.sum()


def disc_kernel(radius: float, edge: float) -> Float[Tensor, "k k"]:
    """A disc that sums to 1, its edge softened by a small Gaussian against staircases."""
    softening = gaussian_kernel(1 if radius <= 8 else 2, edge)  # 3 or 5 pixels wide, as published
    side = math.floor(radius)
    places = torch.arange(-side, side + 1, dtype=torch.float64)
    flat = (places[:, None] ** 2 + places**2 <= radius**2).double()
    square = torch.outer(softening, softening)[None, None]
    soft = F.conv_transpose2d(flat[None, None] / flat.sum(), square)
    return soft[0, 0]
