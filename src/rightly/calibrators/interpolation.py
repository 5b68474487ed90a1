"""Piecewise linear maps, constant beyond their ends."""

import torch
from torch import Tensor


def interpolate(x: Tensor, xs: Tensor, ys: Tensor) -> Tensor:
    """The value at x of the line through the points (xs, ys), xs ascending."""
    if len(xs) == 1:
        return ys.expand(x.shape)
    right = torch.searchsorted(xs, x.contiguous()).clamp(1, len(xs) - 1)
    x0, x1, y0, y1 = xs[right - 1], xs[right], ys[right - 1], ys[right]
    share = ((x - x0) / (x1 - x0)).clamp(0, 1)
    return torch.lerp(y0, y1, share)
