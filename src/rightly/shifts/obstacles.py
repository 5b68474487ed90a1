"""Shifts by what comes between camera and object."""

import torch
import torch.nn.functional as F  # noqa: N812

from rightly.draws import Images, as_images, fields, precise, uniforms
from rightly.shifts.severities import strength

FLAKES = 32  # along each side, if there were no gaps: a flake is a 32nd of the image at any size


def snow(images: Images, severity: int, seed: int = 0) -> Images:
    """White flakes, smeared as they fall, before a whitish veil."""
    share, veil = strength("snow", images, severity)
    values = precise(images)
    flakes = (fields(images, (1, FLAKES, FLAKES), seed) < share).to(values)
    falling = (flakes + F.pad(flakes, (0, 0, 1, 0))[:, :, :-1]).clamp(max=1)
    size = tuple(images.shape[2:])
    white = veil + (1 - veil) * F.interpolate(falling, size, mode="bilinear", align_corners=False)
    return as_images(values + white * (1 - values), images)


def occlusion(images: Images, severity: int, seed: int = 0) -> Images:
    """A grey rectangle of the image's proportions in front, its place drawn for each."""
    (share,) = strength("occlusion", images, severity)
    hidden = torch.ones_like(images[:, :1], dtype=torch.bool)
    for axis, first in zip((2, 3), uniforms(images, 2, seed).unbind(1), strict=True):
        side = images.shape[axis]
        covered = max(1, round(share**0.5 * side))
        start = (first * (side - covered + 1)).long()[:, None]
        places = torch.arange(side, device=images.device)
        inside = (places >= start) & (places < start + covered)
        hidden = hidden & inside.reshape(-1, 1, *((side, 1) if axis == 2 else (1, side)))
    return images.masked_fill(hidden, 0.5)
