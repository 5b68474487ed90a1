"""Shifts of reproduction: few pixels, few bytes, or a drawing in place of a photograph."""

from io import BytesIO

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from rightly.optional import require
from rightly.transforms.image_tensors import Images, promote, to_images


def pixelate(images: Images, kept: float, seed: int = 0) -> Images:
    """The images reduced to fewer pixels and enlarged again, both with Pillow's box filter."""
    values = promote(images)
    rows, columns = (box_matrix(side, int(side * kept)).to(values) for side in images.shape[2:])
    return to_images(rows @ values @ columns.T, images)


def jpeg(images: Images, quality: float, seed: int = 0) -> Images:
    """The images written as JPEG and read again, by Pillow."""
    pillow = require("PIL.Image", "collect")  # only this shift needs it
    pixels = (promote(images) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    read = np.empty_like(pixels)
    for one, result in zip(pixels, read, strict=True):
        file = BytesIO()
        pillow.fromarray(one).save(file, "JPEG", quality=int(quality))
        result[:] = np.asarray(pillow.open(file))
    values = torch.from_numpy(read).to(images.device).permute(0, 3, 1, 2)
    return to_images(values.to(promote(images).dtype) / 255, images)


def sketch(images: Images, drawn: float, seed: int = 0) -> Images:
    """The images blended with a drawing: dark lines on white where brightness changes (Sobel)."""
    values = promote(images)
    grey = values.mean(1, keepdim=True)
    slope = values.new_tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    slopes = torch.stack([slope, slope.T])[:, None]
    lines = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="reflect"), slopes).norm(dim=1, keepdim=True)
    # The hardest edge becomes black; below a slope of 0.02 a pixel there is no edge to bring out.
    drawing = 1 - lines / lines.amax((2, 3), keepdim=True).clamp(min=0.02)
    return to_images(values + drawn * (drawing - values), images)


def box_matrix(side: int, fewer: int) -> Float[Tensor, "{side} {side}"]:
    """The matrix that gives each of `side` pixels the mean of its box, of which there are `fewer`.

    Pillow's box filter takes whole pixels, those whose middle lies in the box. Its arithmetic is
    followed step by step, so that a middle on the very edge falls to the same box.
    """
    pixels = torch.arange(side, dtype=torch.float64)
    width = side / fewer
    centres = (torch.arange(fewer, dtype=torch.float64)[:, None] + 0.5) * width
    first, last = (centres - width / 2 + 0.5).floor(), (centres + width / 2 + 0.5).floor() - 1
    offsets = (pixels - centres + 0.5) * (1 / width)
    inside = (pixels >= first) & (pixels <= last) & (offsets > -0.5) & (offsets <= 0.5)
    means = inside.double() / inside.sum(1, keepdim=True)
    return means[((pixels + 0.5) * (fewer / side)).long()]
