"""Piecewise linear maps, constant beyond their ends."""

import torch
from torch import Tensor


def interpolate(x: Tensor, xs: Tensor, ys: Tensor) -> Tensor:
    """The value at x of the line through the points (xs, ys), xs ascending."""
    if len(xs) == 1:
        return ys.expand(x.shape)
    right = count_below(xs, x).clamp(1, len(xs) - 1)
    x0, x1, y0, y1 = xs[right - 1], xs[right], ys[right - 1], ys[right]
    share = ((x - x0) / (x1 - x0)).clamp(0, 1)
    return torch.lerp(y0, y1, share)


def count_below(xs: Tensor, x: Tensor) -> Tensor:
    """How many of the ascending xs lie below each x."""
    if not torch.compiler.is_exporting():
        return torch.searchsorted(xs, x.contiguous())
    # By halving, in operations that every graph format has.
    count = torch.zeros_like(x, dtype=torch.int64)
    step = 1 << (len(xs).bit_length() - 1)
    while step:
        further = count + step
        below = xs[(further - 1).clamp_max(len(xs) - 1)] < x
        count = torch.where((further <= len(xs)) & below, further, count)
        step //= 2
    return count
