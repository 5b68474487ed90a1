"""Shifts of place: a camera turned or further away, things askew or bent.

The border is mirrored, as in the views.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812

from rightly.transforms.image_tensors import Images, as_images, fields, precise, uniforms
from rightly.transforms.shifts.severities import strength
from rightly.transforms.shifts.warps import displaced, smooth

NODES = 5  # along each side; places between them move by what lies between


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


def shear(images: Images, severity: int, seed: int = 0) -> Images:
    """The images slanted about their middle, to the left or right as drawn for each."""
    (slant,) = strength("shear", images, severity)
    h, w = images.shape[2:]
    heights = ((torch.arange(h, device=images.device) + 0.5) / h - 0.5)[:, None].expand(h, w)
    side = (uniforms(images, 1, seed)[:, 0] < 0.5).float() * 2 - 1
    along = slant * side[:, None, None] * heights
    return displaced(images, torch.stack([along, torch.zeros_like(along)], 1))


def elastic(images: Images, severity: int, seed: int = 0) -> Images:
    """The images bent smoothly: a few places move as drawn, and take what is around with them."""
    (reach,) = strength("elastic", images, severity)
    nodes = reach * (2 * fields(images, (2, NODES, NODES), seed) - 1)
    return displaced(images, smooth(nodes, images))
