"""Shifts of place: a camera turned or further away, things askew or bent.

The border is mirrored, as in the views.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812

from rightly.transforms.image_tensors import Images, draw_fields, draw_uniforms, promote, to_images
from rightly.transforms.shifts.warps import displace, interpolate_nodes

NODES = 5  # along each side; places between them move by what lies between


def rotation(images: Images, degrees: float, seed: int = 0) -> Images:
    """The images turned about their middle, to the left or right as drawn for each."""
    values = promote(images)
    h, w = images.shape[2:]
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    # Coordinates run from -1 to 1 along each side: h / w keeps angles true in oblong images.
    left, right = ([[cos, -s * h / w, 0], [s * w / h, cos, 0]] for s in (sin, -sin))
    grids = F.affine_grid(values.new_tensor([left, right]), [2, 3, h, w], align_corners=False)
    grid = grids[(draw_uniforms(images, 1, seed)[:, 0] < 0.5).long()]
    turned = F.grid_sample(values, grid, padding_mode="reflection", align_corners=False)
    return to_images(turned, images)


def zoom_out(images: Images, share: float, seed: int = 0) -> Images:
    """The images shrunk towards their middle, as seen from further away."""
    h, w = images.shape[2:]
    small = (max(1, round(share * h)), max(1, round(share * w)))
    shrunk = F.interpolate(
        promote(images), size=small, mode="bilinear", align_corners=False, antialias=True
    )
    top, left = (h - small[0]) // 2, (w - small[1]) // 2
    border = (left, w - small[1] - left, top, h - small[0] - top)
    return to_images(F.pad(shrunk, border, mode="reflect"), images)


def shear(images: Images, slant: float, seed: int = 0) -> Images:
    """The images slanted about their middle, to the left or right as drawn for each."""
    h, w = images.shape[2:]
    heights = ((torch.arange(h, device=images.device) + 0.5) / h - 0.5)[:, None].expand(h, w)
    side = (draw_uniforms(images, 1, seed)[:, 0] < 0.5).float() * 2 - 1
    along = slant * side[:, None, None] * heights
    return displace(images, torch.stack([along, torch.zeros_like(along)], 1))


def elastic(images: Images, reach: float, seed: int = 0) -> Images:
    """The images bent smoothly: a few places move as drawn, and take what is around with them."""
    nodes = reach * (2 * draw_fields(images, (2, NODES, NODES), seed) - 1)
    return displace(images, interpolate_nodes(nodes, images))
