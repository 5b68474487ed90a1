"""Shifts by what comes between camera and object."""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Bool
from torch import Tensor

from rightly.tensor_shapes import PerSample
from rightly.transforms.image_tensors import Images, draw_fields, draw_uniforms, promote, to_images

FLAKES = 32  # along each side, if there were no gaps: a flake is a 32nd of the image at any size


def snow(images: Images, share: float, veil: float, seed: int = 0) -> Images:
    """White flakes, smeared as they fall, before a whitish veil."""
    values = promote(images)
    flakes = (draw_fields(images, (1, FLAKES, FLAKES), seed) < share).to(values)
    falling = (flakes + F.pad(flakes, (0, 0, 1, 0))[:, :, :-1]).clamp(max=1)
    size = tuple(images.shape[2:])
    white = veil + (1 - veil) * F.interpolate(falling, size, mode="bilinear", align_corners=False)
    return to_images(values + white * (1 - values), images)


def occlusion(images: Images, share: float, seed: int = 0) -> Images:
    """A grey rectangle of the image's proportions in front, its place drawn for each."""
    draws = draw_uniforms(images, 2, seed)
    sides = enumerate(images.shape[2:])
    rows, columns = (_mark_stretch(side, share**0.5, draws[:, i]) for i, side in sides)
    return images.masked_fill(rows[:, None, :, None] & columns[:, None, None], 0.5)


def _mark_stretch(side: int, share: float, draw: PerSample) -> Bool[Tensor, "n {side}"]:
    """Which of so many places along a side lie in a stretch of it that begins as drawn."""
    length = max(1, round(share * side))
    start = (draw * (side - length + 1)).long()[:, None]
    places = torch.arange(side, device=draw.device)
    return (places >= start) & (places < start + length)
