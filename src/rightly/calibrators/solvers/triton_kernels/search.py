"""Newton's method for one inverse temperature, all of it on the GPU."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads the annotations of kernels as its own.

import torch
import triton
import triton.language as tl
from torch import Tensor

from rightly.calibrators.solvers.triton_kernels.rows import (
    LEAST_EXPONENT,
    MASKED,
    divide,
    load_tile,
    shape_of,
)

PROGRAMS = 2048  # that sums over all rows are divided among: enough to keep any GPU busy
NEARLY_ONE = tl.constexpr(1 + 1e-12)  # the ends of a bracket that holds one number

# What a search knows, on the GPU: these numbers in float64.
STATE = 5
B, LOW, HIGH, DONE, TRUE_MEAN = (tl.constexpr(place) for place in range(STATE))

ROUGH_STEPS = 12  # on a subsample; with the first guess they suffice but for odd data
STEPS = 4  # on all samples, from where the subsample's ended
MAX_ROUNDS = 15  # of so many steps


def search_inverse_temperature(
    logits: Tensor,
    labels: Tensor,
    subsample: int,
    rough_move: float,
    small_move: float,
    max_scale_ratio: float,
) -> float:
    """The inverse temperature of least cross-entropy; the processor waits once, at the end.

    The search ends with a relative step below small_move; on a subsample, which places the start,
    below rough_move.
    """
    near = None
    with torch.cuda.device_of(logits):
        if len(logits) >= 2 * subsample:
            every = len(logits) // subsample
            some, truth = logits[::every], labels[::every]
            near = _begin_search(some, truth, max_scale_ratio, None)
            _take_steps(some, near, ROUGH_STEPS, rough_move)
        state = _begin_search(logits, labels, max_scale_ratio, near)
        for _ in range(MAX_ROUNDS):
            _take_steps(logits, state, ROUGH_STEPS if near is None else STEPS, small_move)
            b, _, _, is_done, _ = state.tolist()
            if is_done:
                break
    return b


def _begin_search(
    logits: Tensor, labels: Tensor, max_scale_ratio: float, near: Tensor | None = None
) -> Tensor:
    """The state of a search for the inverse temperature of least cross-entropy.

    It begins where another search ended, or at one over the scale of the logits: how far the
    largest stands above its row's mean, on average.
    """
    state = torch.zeros(STATE, dtype=torch.float64, device=logits.device)
    sums, grid, options = _prepare_sums(logits)
    _sum_scales[grid](logits, *shape_of(logits), labels, labels.stride(0), sums, **options)
    begun = state if near is None else near
    _begin[(1,)](
        sums, len(logits), max_scale_ratio, begun, near is not None, state, PROGRAMS=PROGRAMS
    )
    return state


def _take_steps(logits: Tensor, state: Tensor, count: int, small_move: float) -> None:
    """Steps of Newton's method inside a bracket that shrinks; none once a step was small."""
    sums, grid, options = _prepare_sums(logits)
    for _ in range(count):
        _sum_moments[grid](logits, *shape_of(logits), state, sums, **options)
        _step[(1,)](sums, len(logits), state, small_move, PROGRAMS=PROGRAMS)


def _prepare_sums(logits: Tensor) -> tuple[Tensor, tuple[int], dict[str, int]]:
    """Two sums for each program, added up in the same order each time."""
    sums = torch.empty(PROGRAMS, 2, dtype=torch.float64, device=logits.device)
    return sums, (PROGRAMS,), divide(logits)[1]


@triton.jit
def _sum_scales(
    logits,
    stride,
    n,
    c,
    labels,
    label_stride,
    sums,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """How far the largest logit lies above the mean of a row, and above the true class's."""
    above_mean, above_true = tl.zeros([ROWS], tl.float64), tl.zeros([ROWS], tl.float64)
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        z = load_tile(logits, stride, n, c, rows, COLUMNS)
        top = tl.max(z, 1)
        is_possible = z > MASKED
        count = tl.sum(is_possible.to(tl.float32), 1)
        mean = tl.sum(tl.where(is_possible, z, 0.0), 1) / tl.maximum(count, 1.0)
        label = tl.load(labels + rows.to(tl.int64) * label_stride, rows < n, 0)
        true = tl.load(logits + rows.to(tl.int64) * stride + label, rows < n, 0)
        above_mean += tl.where(rows < n, top - mean, 0.0).to(tl.float64)
        above_true += tl.where(rows < n, top - true, 0.0).to(tl.float64)
    tl.store(sums + 2 * tl.program_id(0), tl.sum(above_mean, 0))
    tl.store(sums + 2 * tl.program_id(0) + 1, tl.sum(above_true, 0))


@triton.jit
def _sum_moments(
    logits,
    stride,
    n,
    c,
    state,
    sums,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Mean and variance of the scaled gaps b (z - max z) under softmax(b z), over all rows."""
    b = tl.load(state + B).to(tl.float32)
    tiles = tl.where(tl.load(state + DONE) != 0, 0, tl.cdiv(n, ROWS))
    mean, variance = tl.zeros([ROWS], tl.float64), tl.zeros([ROWS], tl.float64)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        z = load_tile(logits, stride, n, c, rows, COLUMNS)
        gaps = tl.maximum((z - tl.max(z, 1)[:, None]) * b, LEAST_EXPONENT)
        e = tl.exp(gaps)
        total = tl.sum(e, 1).to(tl.float64)
        first = tl.sum(e * gaps, 1).to(tl.float64) / total
        second = tl.sum(e * gaps * gaps, 1).to(tl.float64) / total
        mean += tl.where(rows < n, first, 0.0)
        variance += tl.where(rows < n, tl.maximum(second - first * first, 0.0), 0.0)
    tl.store(sums + 2 * tl.program_id(0), tl.sum(mean, 0))
    tl.store(sums + 2 * tl.program_id(0) + 1, tl.sum(variance, 0))


@triton.jit
def _begin(
    sums,
    n,
    max_scale_ratio,
    near,
    is_near,
    state,
    PROGRAMS: tl.constexpr,
):
    programs = tl.arange(0, PROGRAMS)
    scale = tl.sum(tl.load(sums + 2 * programs), 0) / n
    low, high = 1 / (max_scale_ratio * scale), max_scale_ratio / scale
    b = tl.where(is_near, tl.load(near + B), 1 / scale)
    # Where every row is constant no temperature changes anything.
    is_flat = scale == 0
    tl.store(state + B, tl.where(is_flat, 1.0, tl.minimum(tl.maximum(b, low), high)))
    tl.store(state + LOW, low)
    tl.store(state + HIGH, high)
    tl.store(state + DONE, tl.where(is_flat, 1.0, 0.0))
    tl.store(state + TRUE_MEAN, -tl.sum(tl.load(sums + 2 * programs + 1), 0) / n)


@triton.jit
def _step(sums, n, state, small_move, PROGRAMS: tl.constexpr):
    b, low, high = tl.load(state + B), tl.load(state + LOW), tl.load(state + HIGH)
    done = tl.load(state + DONE) != 0
    programs = tl.arange(0, PROGRAMS)
    slope = tl.sum(tl.load(sums + 2 * programs), 0) / (n * b) - tl.load(state + TRUE_MEAN)
    curvature = tl.sum(tl.load(sums + 2 * programs + 1), 0) / (n * b * b)
    below = slope < 0
    low, high = tl.where(below, b, low), tl.where(below, high, b)
    newton = tl.where(curvature > 0, b - slope / curvature, low)
    inside = (newton > low) & (newton < high)
    following = tl.where(inside, newton, tl.sqrt(low * high))
    move = tl.abs(following - b) / b
    # Newton's error after a step is about the square of the step.
    is_last = (inside & (move < small_move)) | (high < low * NEARLY_ONE)
    if not done:
        tl.store(state + B, following)
        tl.store(state + LOW, low)
        tl.store(state + HIGH, high)
        tl.store(state + DONE, tl.where(is_last, 1.0, 0.0))
