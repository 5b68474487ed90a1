"""Piecewise linear maps, constant beyond their ends."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.solvers.execution import Scratch
from rightly.tensor_shapes import Logits

SHIFT = 13  # bits of float32 that do not count: ten of the mantissa's name a bucket
MAX_STEEPNESS = 4.0  # relative change of y by that of x up to which float32 keeps its digits
MAX_COMPARED = 1024  # points that a graph compares with one number per sample at once
MAX_COMPARED_PER_CLASS = 32  # and with one number per class
NEGLIGIBLE_RISE = 1e-3  # a change of y by less, in twice x, has an error of 1e-10


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
    return _search_tables(xs[None], x, torch.zeros_like(x, dtype=torch.int64))


def count_below_in_rows(tables: Tensor, x: Logits) -> Tensor:
    """How many of row j of the ascending tables lie below each entry of column j of x."""
    if not torch.compiler.is_exporting():
        return torch.searchsorted(tables, x.T.contiguous()).T
    rows = torch.arange(len(tables), device=x.device)
    return _search_tables(tables, x, rows.expand_as(x))


def _search_tables(tables: Tensor, x: Tensor, rows: Tensor) -> Tensor:
    """How many of the ascending tables' row lie below each x, in operations of every graph format.

    A search tree: each level compares x with the largest points of a block's parts.
    """
    width = MAX_COMPARED if x.ndim == 1 else MAX_COMPARED_PER_CLASS
    width = min(width, tables.shape[1])
    levels = 1
    while width**levels < tables.shape[1]:
        levels += 1
    padding = width**levels - tables.shape[1]
    padded = functional.pad(tables, (0, padding), value=torch.inf) if padding else tables
    place = rows
    for level in reversed(range(levels)):
        last_points = padded.reshape(-1, width, width**level)[..., -1]
        points = last_points[0] if len(last_points) == 1 else last_points[place]
        below = (points < x[..., None]).sum(-1)
        place = place * width + (below.clamp_max(width - 1) if level else below)
    return place - rows * width**levels


class LineTable:
    """The lines of a map of 0..1 by the leading bits of x, for many values on a processor.

    Those bits name a bucket, at most a thousandth of x wide. Where one line covers a bucket and
    float32 is enough for it, it is read from a table; elsewhere the table has NaN, and values are
    interpolated.
    """

    def __init__(self, xs: Tensor, ys: Tensor) -> None:
        self.xs, self.ys = xs, ys
        last = int(torch.ones(1).view(torch.int32)) >> SHIFT
        edges = torch.arange(last + 3, dtype=torch.int32) << SHIFT
        places = edges.view(torch.float32).double()
        left, right = places[:-1], places[1:]
        line = torch.searchsorted(xs, left)
        is_bent = torch.searchsorted(xs, right, right=True) != line
        segment = line.clamp(1, len(xs) - 1)
        rise, run = ys[segment] - ys[segment - 1], xs[segment] - xs[segment - 1]
        is_inside = (line > 0) & (line < len(xs)) & (run > 0)
        slope = torch.where(is_inside, rise / run.clamp_min(1e-300), 0)
        ends = torch.where(line > 0, ys[-1], ys[0])
        offset = torch.where(is_inside, ys[segment] - slope * xs[segment], ends)
        is_steep = slope * right > MAX_STEEPNESS * (offset + slope * left) + NEGLIGIBLE_RISE
        lines = torch.stack([offset, slope], -1).float()
        lines[is_bent | is_steep] = torch.nan
        self.lines = lines.view(torch.float64).squeeze(-1)  # both by one look into the table

    def __call__(self, x: Tensor, scratch: Scratch) -> Tensor:
        """The map's values in float32, in memory that the next call writes to again."""
        flat = x.reshape(-1)
        single = scratch.copy("single", flat, torch.float32)
        bucket = scratch.copy("bucket", single.view(torch.int32)).bitwise_right_shift_(SHIFT)
        buffer = scratch.take("lines", flat, torch.float64)
        lines = torch.index_select(self.lines, 0, bucket, out=buffer)
        lines = lines.view(torch.float32).view(-1, 2)
        values = torch.addcmul(lines[:, 0], lines[:, 1], single, out=single)
        # NumPy finds the few in a quarter of torch's time.
        chosen = torch.from_numpy(np.flatnonzero(np.isnan(values.numpy())))
        values[chosen] = interpolate(flat[chosen], self.xs, self.ys).float()
        return values.view_as(x)
