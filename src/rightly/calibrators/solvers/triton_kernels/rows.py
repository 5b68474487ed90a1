"""Passes over rows of logits: each is read once, and one number or three are written."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads the annotations of kernels as its own.

import torch
import triton
import triton.language as tl
from torch import Tensor

MASKED = tl.constexpr(-1e9)  # a logit of this or less, as in `rightly.predictions.masking`
LEAST_EXPONENT = tl.constexpr(-1000.0)  # exp of less is 0, but 0 times an infinite gap is not
LOG2_E = tl.constexpr(1.4426950216293335)  # in float32, and what that leaves of it
LOG2_E_REST = tl.constexpr(1.9259629911266175e-08)
LOG_2 = tl.constexpr(0.6931471805599453)

PER_TILE = 1024  # entries of a tile of short rows; a longer row is a tile of its own


def top_probability(logits: Tensor, classes: Tensor, inverse: Tensor) -> Tensor:
    """1 / (1 + sum over other classes j of exp(b (z_j - z_class))), in float64."""
    confidence = torch.empty(len(logits), dtype=torch.float64, device=logits.device)
    tiles, options = divide(logits)
    with torch.cuda.device_of(logits):  # Triton goes by the current one, not by where tensors are
        _top_probability[(tiles,)](
            logits,
            *shape_of(logits),
            classes,
            classes.stride(0),
            inverse,
            inverse.stride(0),
            confidence,
            **options,
        )
    return confidence


def log_odds(logits: Tensor, classes: Tensor, inverse: Tensor, most: float) -> Tensor:
    """Log-odds (n, 3) of these classes, of the likeliest other and of the likeliest of all."""
    odds = torch.empty(len(logits), 3, dtype=torch.float64, device=logits.device)
    tiles, options = divide(logits)
    with torch.cuda.device_of(logits):
        _log_odds[(tiles,)](
            logits, *shape_of(logits), classes, classes.stride(0), inverse, odds, most, **options
        )
    return odds


def shape_of(logits: Tensor) -> tuple[int, int, int]:
    return logits.stride(0), len(logits), logits.shape[1]


def divide(logits: Tensor) -> tuple[int, dict[str, int]]:
    """How many tiles, and how many rows and columns a tile has."""
    columns = triton.next_power_of_2(logits.shape[1])
    rows = max(1, PER_TILE // columns)
    warps = min(max(columns // 512, 4), 16)
    return triton.cdiv(len(logits), rows), {"ROWS": rows, "COLUMNS": columns, "num_warps": warps}


@triton.jit
def load_tile(logits, stride, n, c, rows, COLUMNS: tl.constexpr):
    """A tile, -inf beyond its columns and 0 beyond the rows, where any number will do."""
    columns = tl.arange(0, COLUMNS)
    places = rows[:, None].to(tl.int64) * stride + columns[None, :]
    z = tl.load(logits + places, (rows[:, None] < n) & (columns[None, :] < c), -float("inf"))
    return tl.where(rows[:, None] < n, z, 0.0)


@triton.jit
def exp_accurately(x):
    """exp in all digits of float32: tl.exp loses as many of them as x has before the point."""
    x = tl.maximum(x, LEAST_EXPONENT)
    power = x * LOG2_E
    rest = tl.fma(x, LOG2_E, -power) + x * LOG2_E_REST
    return tl.exp2(power) * (1 + rest * LOG_2)


@triton.jit
def _top_probability(
    logits,
    stride,
    n,
    c,
    classes,
    class_stride,
    inverse,
    inverse_stride,
    confidence,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    z = load_tile(logits, stride, n, c, rows, COLUMNS)
    top = tl.load(classes + rows.to(tl.int64) * class_stride, rows < n, 0)
    b = tl.load(inverse + rows * inverse_stride, rows < n, 1).to(tl.float32)
    own = tl.load(logits + rows.to(tl.int64) * stride + top, rows < n, 0)
    e = exp_accurately((z - own[:, None]) * b[:, None])
    is_other = tl.arange(0, COLUMNS)[None, :] != top[:, None]
    others = tl.sum(tl.where(is_other, e, 0.0), 1).to(tl.float64)
    tl.store(confidence + rows, 1 / (1 + others), rows < n)


@triton.jit
def _log_odds(
    logits,
    stride,
    n,
    c,
    classes,
    class_stride,
    inverse,
    odds,
    most,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    z = load_tile(logits, stride, n, c, rows, COLUMNS)
    b = tl.load(inverse).to(tl.float32)
    chosen = tl.load(classes + rows.to(tl.int64) * class_stride, rows < n, 0)
    own = tl.load(logits + rows.to(tl.int64) * stride + chosen, rows < n, 0)
    top, where = tl.max(z, 1, return_indices=True)
    e = exp_accurately((z - top[:, None]) * b)
    columns = tl.arange(0, COLUMNS)[None, :]
    tail = tl.where((columns == chosen[:, None]) | (columns == where[:, None]), 0.0, e)
    second = tl.max(tail, 1).to(tl.float64)
    total = tl.sum(tail, 1).to(tl.float64)
    same = exp_accurately((own - top) * b).to(tl.float64)
    # The two that may be large are added afterwards: no sum loses what is left to them.
    agrees = where == chosen
    other = tl.where(agrees, second, 1.0)
    rest_of_same = total + tl.where(agrees, 0.0, 1.0)
    rest_of_other = same + total - tl.where(agrees, second, 0.0)
    likeliest = tl.where(agrees, same, other)
    rest_of_likeliest = tl.where(agrees, rest_of_same, rest_of_other)
    place = odds + 3 * rows
    tl.store(place, _bound(tl.log(same) - tl.log(rest_of_same), most), rows < n)
    tl.store(place + 1, _bound(tl.log(other) - tl.log(rest_of_other), most), rows < n)
    tl.store(place + 2, _bound(tl.log(likeliest) - tl.log(rest_of_likeliest), most), rows < n)


@triton.jit
def _bound(x, most):
    return tl.minimum(tl.maximum(x, -most), most)
