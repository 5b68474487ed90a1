"""Views of colour: grey, jittered, stretched in contrast."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from rightly.transforms.image_tensors import Images, constant, draw_uniforms, promote, to_images
from rightly.transforms.views.geometry import hflip

RED, GREEN, BLUE = 0.299, 0.587, 0.114  # luma weights of ITU-R BT.601, as in Pillow
# A quarter turn of hue: maps I to Q and Q to -I in the YIQ space (NTSC, 1953), grey to nothing.
QUARTER_TURN = (
    (0.167740, 0.329309, -0.497049),
    (-0.328113, 0.035467, 0.292646),
    (1.249546, -1.046339, -0.203207),
)


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


def hflip_autocontrast(images: Images) -> Images:
    """The images with brightness stretched as by `autocontrast`, mirrored."""
    return hflip(autocontrast(images))


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
