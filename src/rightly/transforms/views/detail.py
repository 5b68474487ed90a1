"""Views of detail: noise, a part erased, blurred, sharpened, fewer pixels."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from rightly.transforms.image_tensors import (
    Images,
    blur_gaussian,
    draw_gaussians,
    draw_uniforms,
    promote,
    to_images,
)
from rightly.transforms.views.geometry import hflip


def gaussian_noise(images: Images, seed: int = 0) -> Images:
    """Noise of standard deviation 0.05 in each channel: grain of a photograph in poor light.

    One fixed field of noise serves all images; each starts reading it at its own place, which
    spares millions of draws a batch.
    """
    n, _, h, w = images.shape
    starts = 4096  # enough that the images of a batch rarely share one, few enough to draw fast
    field = draw_gaussians(3 * (h * w + starts), seed, images.device).reshape(3, -1)
    first = (draw_uniforms(images, 1, seed) * starts).int()
    places = first + torch.arange(h * w, device=images.device, dtype=torch.int32)
    noise = field.index_select(1, places.flatten()).reshape(3, n, h, w).transpose(0, 1)
    return to_images(torch.add(promote(images), noise, alpha=0.05), images)


def random_erasing(images: Images, seed: int = 0) -> Images:
    """A rectangle of 2 to 33 % of the area, filled with the image's mean colour.

    Area and aspect, 0.3 to 3.3, are those of Zhong et al. (2020). The mean colour is about what
    erasing after normalisation leaves, and needs no statistics of the data set.
    """
    h, w = images.shape[2:]
    area, aspect, top, left = draw_uniforms(images, 4, seed)[:, :, None].unbind(1)
    size = (0.02 + 0.31 * area).sqrt()
    # (1 + t) / (1 - t) is close to exp(2 t), but unlike exp it rounds alike on every device.
    t = 0.29 * (2 * aspect - 1)
    stretch = (1 + t) / (1 - t)
    rows = _mark_run(h, (size * stretch).clamp(max=1), top)[:, None, :, None]
    columns = _mark_run(w, (size / stretch).clamp(max=1), left)[:, None, None, :]
    # Some devices multiply by 1 / (h w), which can lift the mean of a white image above 1.
    mean = promote(images).mean((2, 3), keepdim=True).clamp(max=1)
    return torch.where(rows & columns, mean.to(images.dtype), images)


def blur(images: Images) -> Images:
    """A Gaussian blur of 1/80 of the shorter side: 0.4 pixels at 32, 2.8 at 224.

    That is severity 1 of CIFAR-10-C and between 2 and 3 of ImageNet-C: soft, still readable.
    """
    sigma = max(0.4, min(images.shape[2:]) / 80)  # less than 0.4 would blur nothing
    return to_images(blur_gaussian(promote(images), sigma), images)


def sharpen(images: Images) -> Images:
    """The detail that a Gaussian blur would take away, added once more (an unsharp mask).

    The blur is of 1/60 of the shorter side, 3.7 pixels at 224, and of 0.7 pixels at least.
    """
    values = promote(images)
    sigma = max(0.7, min(images.shape[2:]) / 60)
    return to_images(2 * values - blur_gaussian(values, sigma), images)


def hflip_sharpen(images: Images) -> Images:
    """The images sharpened as by `sharpen`, mirrored."""
    return hflip(sharpen(images))


def low_resolution(images: Images) -> Images:
    """The images at three quarters of their sides, enlarged again: as from a smaller camera."""
    h, w = images.shape[2:]
    small = (round(0.75 * h), round(0.75 * w))
    shrunk = F.interpolate(promote(images), size=small, mode="bilinear", align_corners=False)
    return to_images(
        F.interpolate(shrunk, size=(h, w), mode="bilinear", align_corners=False), images
    )


def _mark_run(side: int, share: Float[Tensor, "n 1"], place: Float[Tensor, "n 1"]) -> Tensor:
    """Marks a run of pixels that takes up a share of the side, at a place within what is left."""
    start = place * (1 - share) * side
    pixels = torch.arange(side, device=share.device) + 0.5
    return (pixels >= start) & (pixels < start + share * side)
