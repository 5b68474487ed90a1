"""Images that tests of views and shifts share."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

SEVERITIES = (1, 2, 3, 4, 5)
every_severity = pytest.mark.parametrize("severity", SEVERITIES)


def photos(n: int = 8, h: int = 32, w: int = 32, seed: int = 0) -> Tensor:
    """Smooth 8-bit images with some texture, which photographs resemble more than noise does."""
    generator = torch.Generator().manual_seed(seed)
    shapes = F.interpolate(torch.rand(n, 3, 5, 5, generator=generator), (h, w), mode="bicubic")
    texture = 0.05 * torch.randn(n, 3, h, w, generator=generator)
    return ((shapes + texture).clamp(0, 1) * 255).round() / 255


def places(h: int, w: int, n: int = 6) -> Tensor:
    """Images that tell in red how far right and in green how far down a pixel is, from 0 to 1."""
    down, right = ((torch.arange(side) + 0.5) / side for side in (h, w))
    image = torch.stack([right.expand(h, w), down[:, None].expand(h, w), torch.zeros(h, w)])
    images = image.repeat(n, 1, 1, 1)
    images[:, 2, 0, 0] = torch.arange(n) / 255  # so that no two draw alike
    return images
