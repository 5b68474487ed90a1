"""The inverse temperature of each row at which its class has a confidence, solved in registers."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads the annotations of kernels as its own.

import torch
import triton
import triton.language as tl
from torch import Tensor

from rightly.calibrators.solvers.triton_kernels.rows import (
    MASKED,
    divide,
    exp_accurately,
    load_tile,
    shape_of,
)

LEAST_EXPONENT = tl.constexpr(-80.0)  # so that no sum over the other classes is 0
TINY = tl.constexpr(1e-300)


def solve_inverse_temperatures(
    logits: Tensor, classes: Tensor, target: Tensor, flat: float, close: float, max_steps: int
) -> Tensor:
    """The method of `confidence_inverse`, for logits of confidences as target."""
    inverse = torch.empty_like(target)
    tiles, options = divide(logits)
    with torch.cuda.device_of(logits):
        _solve[(tiles,)](
            logits,
            *shape_of(logits),
            classes,
            classes.stride(0),
            target,
            inverse,
            flat,
            close,
            max_steps,
            **options,
        )
    return inverse


@triton.jit
def _solve(
    logits,
    stride,
    n,
    c,
    classes,
    class_stride,
    target,
    inverse,
    flat,
    close,
    max_steps,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    z = load_tile(logits, stride, n, c, rows, COLUMNS)
    top = tl.load(classes + rows.to(tl.int64) * class_stride, rows < n, 0)
    own = tl.load(logits + rows.to(tl.int64) * stride + top, rows < n, 0)
    goal = tl.load(target + rows, rows < n, 0)
    counts = (tl.arange(0, COLUMNS)[None, :] != top[:, None]) & (z > MASKED)
    gaps = tl.where(counts, z - own[:, None], 0.0)
    # At b = 0, where the parabola that gives the first guess touches.
    count = tl.maximum(tl.sum(counts.to(tl.float32), 1), 1.0).to(tl.float64)
    start = -tl.sum(gaps, 1).to(tl.float64) / count
    spread = tl.sum(gaps * gaps, 1).to(tl.float64) / count - start * start
    reach = tl.maximum(start, TINY)
    lowest, highest = flat / reach, 1e6 / reach
    zero = tl.zeros_like(goal)
    b = _propose(zero, goal + tl.log(count), start, tl.maximum(spread, 0.0))
    b = tl.minimum(tl.maximum(b, lowest), highest)
    low, high = zero, 2 * highest
    done = (rows >= n) | (start <= 0)
    steps = 0
    while (steps < max_steps) & (tl.min(done.to(tl.int32), 0) == 0):
        x = tl.maximum(gaps * b.to(tl.float32)[:, None], LEAST_EXPONENT)
        e = tl.where(counts, exp_accurately(x), 0.0)
        total = tl.maximum(tl.sum(e, 1).to(tl.float64), TINY)
        first = tl.sum(e * gaps, 1).to(tl.float64) / total
        second = tl.sum(e * gaps * gaps, 1).to(tl.float64) / total
        miss = goal + tl.log(total)
        low, high = tl.where(miss > 0, b, low), tl.where(miss > 0, high, b)
        step = _propose(b, miss, -first, tl.maximum(second - first * first, 0.0))
        inside = (step >= low) & (step <= high)
        following = tl.where(inside, step, (low + high) / 2)
        following = tl.minimum(tl.maximum(following, lowest), highest)
        is_last = tl.abs(following - b) <= close * following
        b = tl.where(done, b, following)
        done = done | is_last
        steps += 1
    tl.store(inverse + rows, tl.where(start > 0, b, 1.0), rows < n)


@triton.jit
def _propose(b, miss, slope, curvature):
    """Where the parabola reaches what is missing."""
    root = tl.sqrt(tl.maximum(slope * slope - 2 * curvature * miss, 0.0))
    return b + 2 * miss / tl.maximum(slope + root, TINY)
