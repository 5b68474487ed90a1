"""Shifts of the camera: turned, or further away. The border is mirrored, as in the views."""

import math

import torch.nn.functional as F  # noqa: N812

from rightly.draws import Images, as_images, precise, uniforms
from rightly.shifts.severities import strength


def rotation(images: Images, severity: int, seed: int = 0) -> Images:
    """The images turned about their middle, to the left or right as drawn for each."""
    (degrees,) = strength("rotation", images, severity)
    values = precise(images)
    h, w = images.shape[2:]
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    # Coordinates run from -1 to 1 along each side: h / w keeps angles true in oblong images.
    left, right = ([[cos, -s * h / w, 0], [s * w / h, cos, 0]] for s in (sin, -sin))
    grids = F.affine_grid(values.new_tensor([left, right]), [2, 3, h, w], align_corners=False)
    grid = grids[(uniforms(images, 1, seed)[:, 0] < 0.5).long()]
    turned = F.grid_sample(values, grid, padding_mode="reflection", align_corners=False)
    return as_images(turned, images)


def zoom_out(images: Images, severity: int, seed: int = 0) -> Images:
    """The images shrunk towards their middle, as seen from further away."""
    (share,) = strength("zoom_out", images, severity)
    h, w = images.shape[2:]
    small = (max(1, round(share * h)), max(1, round(share * w)))
    shrunk = F.interpolate(
        precise(images), size=small, mode="bilinear", align_corners=False, antialias=True
    )
    top, left = (h - small[0]) // 2, (w - small[1]) // 2
    border = (left, w - small[1] - left, top, h - small[0] - top)
    return as_images(F.pad(shrunk, border, mode="reflect"), images)
