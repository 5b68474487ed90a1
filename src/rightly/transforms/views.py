"""Views: other looks at the same image, whose class a good classifier should not change.

Each takes images before normalisation. All are plain tensor operations that run on any device and
export to ONNX inside the classifier's graph. A random view draws from its seed and the image alone
(see image_tensors.py), so an image has the same view in any batch. Range is checked by whoever
collects: a look at the values cannot be exported.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from rightly.registry import Registry
from rightly.transforms.image_tensors import (
    Images,
    blur_gaussian,
    constant,
    draw_gaussians,
    draw_uniforms,
    promote,
    to_images,
)

Transform = Callable[[Images], Images]


@dataclass(frozen=True)
class View:
    """Another look at images, by name: shape, range and type stay, and each image is alone."""

    name: str
    transform: Transform

    def __call__(self, images: Images) -> Images:
        return self.transform(images)


RED, GREEN, BLUE = 0.299, 0.587, 0.114  # luma weights of ITU-R BT.601, as in Pillow
# A quarter turn of hue: maps I to Q and Q to -I in the YIQ space (NTSC, 1953), grey to nothing.
QUARTER_TURN = (
    (0.167740, 0.329309, -0.497049),
    (-0.328113, 0.035467, 0.292646),
    (1.249546, -1.046339, -0.203207),
)


def rotation(images: Images) -> Images:
    """The images turned by 15 degrees anticlockwise, mirrored at the border.

    Black corners would be a second change, and one that a classifier answers by itself.
    """
    n, _, h, w = images.shape
    cos, sin = math.cos(math.radians(15)), math.sin(math.radians(15))
    # Coordinates run from -1 to 1 along each side: h / w keeps angles true in oblong images.
    values = promote(images)
    matrix = ((cos, -sin * h / w, 0.0), (sin * w / h, cos, 0.0))
    turn = constant((matrix,), values.device, values.dtype)
    grid = F.affine_grid(turn, [1, 3, h, w], align_corners=False).expand(n, -1, -1, -1)
    turned = F.grid_sample(values, grid, padding_mode="reflection", align_corners=False)
    return to_images(turned, images)


def grayscale(images: Images) -> Images:
    """The brightness of each pixel in all three channels (luma of ITU-R BT.601)."""
    red, green, blue = promote(images).split(1, 1)
    luma = (RED * red).add(green, alpha=GREEN).add(blue, alpha=BLUE)
    return luma.clamp(0, 1).to(images.dtype).repeat(1, 3, 1, 1)


def color_jitter(images: Images, seed: int = 0) -> Images:
    """Brightness, contrast and saturation changed by up to 0.4, hue by up to 0.1 of a turn.

    The form is that common in training (Chen et al., 2020, use it in SimCLR). All four changes
    are linear in colour, so they are joined into one matrix and clipped once, at the end.
    """
    values = promote(images)
    draws = draw_uniforms(images, 4, seed).to(values.dtype)
    brightness, contrast, saturation = (0.6 + 0.8 * draws[:, :3]).unbind(1)
    turn = (draws[:, 3] - 0.5) * (2 * math.pi * 0.2)
    matrix = _colour_matrix(brightness * contrast, saturation, turn)
    # Contrast is taken about the mean luma: a grey, which saturation and hue leave alone.
    luma = constant((RED, GREEN, BLUE), values.device, values.dtype)
    mean = (values.mean((2, 3)) * luma).sum(1)
    changed = (brightness * (1 - contrast) * mean)[:, None, None, None]
    for channel in range(3):
        weights = matrix[:, :, channel, None, None]
        changed = torch.addcmul(changed, weights, values[:, channel : channel + 1])
    return to_images(changed, images)


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


def rotation_90(images: Images) -> Images:
    """The images turned by a quarter anticlockwise; oblong ones are then fitted to their shape."""
    h, w = images.shape[2:]
    turned = images.transpose(2, 3).flip(2).contiguous()
    if h == w:
        return turned
    fitted = F.interpolate(promote(turned), size=(h, w), mode="bilinear", align_corners=False)
    return to_images(fitted, images)


def hflip(images: Images) -> Images:
    """The images in a mirror: left and right swapped."""
    return images.flip(3)


def translation(images: Images) -> Images:
    """The images moved right and down by a tenth of their sides, mirrored at the border."""
    return _translate(images, 0.1)


def zoom(images: Images) -> Images:
    """The middle 80 % of each side, enlarged to the full image."""
    h, w = images.shape[2:]
    top, left = round(0.1 * h), round(0.1 * w)
    middle = promote(images)[:, :, top : h - top, left : w - left]
    return to_images(
        F.interpolate(middle, size=(h, w), mode="bilinear", align_corners=False), images
    )


def blur(images: Images) -> Images:
    """A Gaussian blur of 1/80 of the shorter side: 0.4 pixels at 32, 2.8 at 224.

    That is severity 1 of CIFAR-10-C and between 2 and 3 of ImageNet-C: soft, still readable.
    """
    sigma = max(0.4, min(images.shape[2:]) / 80)  # less than 0.4 would blur nothing
    return to_images(blur_gaussian(promote(images), sigma), images)


def translation_back(images: Images) -> Images:
    """The images moved left and up by a tenth of their sides: the opposite of `translation`."""
    return _translate(images, -0.1)


def autocontrast(images: Images) -> Images:
    """Brightness stretched: two standard deviations below the mean become black, two above white.

    It undoes what fog and weak light do. Mean and deviation are over all pixels and channels of an
    image, so that grey stays grey. The stretch is twentyfold at most; a flat image becomes black.
    """
    values = promote(images)
    mean = values.mean((1, 2, 3), keepdim=True)
    deviation = (values - mean).square().mean((1, 2, 3), keepdim=True).sqrt()
    stretched = (values - (mean - 2 * deviation)) / (4 * deviation).clamp(min=0.05)
    return to_images(stretched, images)


def sharpen(images: Images) -> Images:
    """The detail that a Gaussian blur would take away, added once more (an unsharp mask).

    The blur is of 1/60 of the shorter side, 3.7 pixels at 224, and of 0.7 pixels at least.
    """
    values = promote(images)
    sigma = max(0.7, min(images.shape[2:]) / 60)
    return to_images(2 * values - blur_gaussian(values, sigma), images)


VIEWS: Registry[View] = Registry(
    "view",
    View,
    [  # the paper's three first, then the two it also tried, then our own
        View("rotation", rotation),
        View("grayscale", grayscale),
        View("color_jitter", color_jitter),
        View("gaussian_noise", gaussian_noise),
        View("random_erasing", random_erasing),
        View("rotation_90", rotation_90),
        View("hflip", hflip),
        View("translation", translation),
        View("zoom", zoom),
        View("blur", blur),
        View("translation_back", translation_back),
        View("autocontrast", autocontrast),
        View("sharpen", sharpen),
    ],
)


def _colour_matrix(
    scale: Float[Tensor, " n"], saturation: Float[Tensor, " n"], turn: Float[Tensor, " n"]
) -> Float[Tensor, "n 3 3"]:
    """Scales all of a colour; stretches and turns only what sets it apart from grey."""
    grey = ((RED, GREEN, BLUE),) * 3
    colour = tuple(tuple(float(i == j) - grey[i][j] for j in range(3)) for i in range(3))
    parts = constant((grey, colour, QUARTER_TURN), scale.device, scale.dtype)
    chroma = scale * saturation
    shares = torch.stack([scale, chroma * turn.cos(), chroma * turn.sin()], 1)
    return (shares[:, :, None, None] * parts).sum(1)


def _mark_run(side: int, share: Float[Tensor, "n 1"], place: Float[Tensor, "n 1"]) -> Tensor:
    """Marks a run of pixels that takes up a share of the side, at a place within what is left."""
    start = place * (1 - share) * side
    pixels = torch.arange(side, device=share.device) + 0.5
    return (pixels >= start) & (pixels < start + share * side)


def _translate(images: Images, share: float) -> Images:
    """The images moved right and down by a share of their sides; left and up where negative."""
    h, w = images.shape[2:]
    down, right = round(share * h), round(share * w)
    up, left = max(-down, 0), max(-right, 0)
    padded = F.pad(images, (max(right, 0), left, max(down, 0), up), mode="reflect")
    return padded[:, :, up : up + h, left : left + w].contiguous()
