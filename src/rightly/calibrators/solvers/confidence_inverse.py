"""The inverse temperature b = 1 / T at which softmax(b z) gives the top class a confidence.

With s(b) the sum over the other classes of exp(b (z_j - z_top)), logit(confidence) = -log s(b).
That is concave and increasing in b; its slope and curvature are the mean and variance of the gaps
under softmax among the others, so each step solves a parabola and its error falls as a cube.
"""

from dataclasses import dataclass
from typing import NamedTuple, no_type_check

import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import (
    Scratch,
    exp_up_to_scale,
    is_unsynchronised,
    iterate_chunks,
)
from rightly.calibrators.solvers.fused import kernels_for
from rightly.calibrators.solvers.temperature import mark_class
from rightly.predictions.masking import MASKED, has_masked
from rightly.tensor_shapes import Labels, Logits, PerSample

# A step that is this small, relatively, leaves an error of about its cube.
CLOSE = {torch.float32: 6e-3, torch.float64: 1e-4}
FIXED_STEPS = 9  # in a graph or on a GPU, where looking whether to stop costs more than a step
MAX_STEPS = 60
LOOPS_SINCE = "2.13"  # release of torch whose exporter was tested with a loop
FEWER = 0.75  # share of the rows that are not done, below which the others are dropped
FLAT = 1e-6  # a margin this small over uniform is all but uniform
MAX_B = 1e6  # in units of one over the mean gap
MAX_CONFIDENCE = 1 - 1e-13
TINY = 1e-37  # float32, which the constants of a graph are, holds it


class Shape(NamedTuple):
    """logit(confidence) at some b, its slope and minus its curvature."""

    value: PerSample
    slope: PerSample
    curvature: PerSample


@dataclass(frozen=True)
class _Gaps:
    """Gaps of the classes below each row's top one; sums over them are taken chunk by chunk."""

    logits: Logits
    top: Tensor  # (n, 1)
    has_masked: bool
    scratch: Scratch

    @staticmethod
    def of(logits: Logits, top: Tensor) -> "_Gaps":
        return _Gaps(logits, top, has_masked(logits), Scratch())

    def at_zero(self) -> Shape:
        parts = []
        for rows in iterate_chunks(self.logits):
            gaps, buffer, masked = self._compute(rows, self.top[rows])
            count = torch.full_like(gaps[:, 0], gaps.shape[1] - 1, dtype=torch.float64)
            if masked is not None:
                count = count - masked.sum(-1)
            first, second = gaps.sum(-1), torch.square(gaps, out=buffer).sum(-1)
            parts.append((count, -first.double(), second.double()))
        count, total, second = (torch.cat(column) for column in zip(*parts, strict=True))
        count = count.clamp_min(1)
        slope = total / count
        curvature = (second / count - slope.square()).clamp_min(0)
        return Shape(-count.log(), slope, curvature)

    def at(self, b: PerSample, index: Tensor | None) -> Shape:
        """The shape at each row's b; of the indexed rows only, where there is an index."""
        scale, parts = b[:, None].to(self.logits.dtype), []
        for rows in iterate_chunks(self.logits if index is None else self.logits[: len(index)]):
            chosen = rows if index is None else index[rows]
            top = self.top[chosen]
            gaps, buffer, masked = self._compute(chosen, top)
            e = exp_up_to_scale(torch.mul(gaps, scale[rows], out=buffer))
            own = e.gather(1, top).squeeze(1)
            e = e.scatter_(1, top, 0)
            if masked is not None:
                e = e.masked_fill_(masked, 0)
            total = e.sum(-1)
            first = e.mul_(gaps).sum(-1)
            parts.append((own, total, first, e.mul_(gaps).sum(-1)))
        columns = (torch.cat(column).double() for column in zip(*parts, strict=True))
        own, total, first, second = columns
        total = total.clamp_min(TINY)
        first = first / total
        value = own.log() - total.log()
        return Shape(value, -first, (second / total - first.square()).clamp_min(0))

    def _compute(
        self, rows: slice | Tensor, top: Tensor
    ) -> tuple[Logits, Tensor | None, Tensor | None]:
        """The gaps of some rows, 0 for masked classes; a buffer like them; what is masked."""
        part = self.logits[rows] if isinstance(rows, slice) else self.logits[: len(rows)]
        own, buffer = (self.scratch.take(name, part) for name in ("gaps", "e"))
        z = part if isinstance(rows, slice) else torch.index_select(self.logits, 0, rows, out=own)
        masked = z <= MASKED if self.has_masked else None
        gaps = torch.sub(z, z.gather(-1, top), out=own)
        return (gaps if masked is None else gaps.masked_fill(masked, 0)), buffer, masked


# Where tests check shapes at run time they must not inside a loop that is traced.
@no_type_check
def _follow_parabola(b: Tensor, miss: Tensor, slope: Tensor, curvature: Tensor) -> Tensor:
    """Where the parabola of this slope and minus curvature at b has risen by what is missing."""
    root = (slope.square() - 2 * curvature * miss).clamp_min(0).sqrt()
    return b + 2 * miss / (slope + root).clamp_min(TINY)


class _Goal(NamedTuple):
    """The logit of each row's confidence, and the smallest and largest b it may take."""

    target: PerSample
    lowest: PerSample
    highest: PerSample

    def propose(self, b: PerSample, shape: Shape) -> PerSample:
        """Where the parabola through this shape reaches the target."""
        return _follow_parabola(b, self.target - shape.value, shape.slope, shape.curvature)

    def take(self, rows: Tensor) -> "_Goal":
        return _Goal(*(column[rows] for column in self))


def inverse_temperature_for(
    logits: Logits, confidence: PerSample, classes: Labels | None = None
) -> PerSample:
    """The inverse temperature at which softmax gives each row's class this confidence.

    A confidence at or below 1 / c has no temperature: its row becomes all but uniform. Classes,
    where known, are those of the largest logits.
    """
    top = logits.argmax(-1) if classes is None else classes
    # A view, because onnxscript 0.7 loses the bounds of a second Clip of one and the same value.
    target = torch.logit(confidence[:].double().clamp(0.5 / logits.shape[1], MAX_CONFIDENCE))
    if torch.compiler.is_exporting():
        return _solve_in_graph(logits, top, target)
    kernels = kernels_for(logits)
    if kernels is not None:
        precision = FLAT, CLOSE[logits.dtype], MAX_STEPS
        found: PerSample = kernels.solve_inverse_temperatures(logits, top, target, *precision)
        return found
    gaps = _Gaps.of(logits, top[:, None])
    flat = gaps.at_zero()
    reach = flat.slope.clamp_min(TINY)
    goal = _Goal(target, FLAT / reach, MAX_B / reach)
    b = goal.propose(torch.zeros_like(target), flat).clamp(goal.lowest, goal.highest)
    return torch.where(flat.slope > 0, _solve(gaps, goal, b), torch.ones_like(b))


@no_type_check
def _solve_in_graph(logits: Logits, top: Tensor, target: PerSample) -> PerSample:
    """The same as one loop in a graph, from b = 0; its body uses only what the loop carries."""
    # A weight of 0 for the class itself and for masked ones, which no sum over the others counts.
    is_other = (logits > MASKED) & ~mark_class(logits, top)
    weights = is_other.to(logits.dtype)
    gaps = (logits - logits.amax(-1, keepdim=True)) * weights
    reach = -gaps.sum(-1) / weights.sum(-1).clamp_min(1)
    # In units of the mean gap b has the same bounds in all rows.
    unit = reach.clamp_min(TINY)
    gaps, close = gaps / unit[:, None], CLOSE[logits.dtype]
    step, is_open = torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.bool)
    low, high = torch.zeros_like(target), torch.full_like(target, 2 * MAX_B)

    def goes_on(step: Tensor, is_open: Tensor, *carried: Tensor) -> Tensor:
        return (step < MAX_STEPS) & is_open

    def take_step(step: Tensor, is_open: Tensor, *carried: Tensor) -> tuple[Tensor, ...]:
        b, low, high, target, gaps, weights = carried
        e = (gaps * b[:, None].to(gaps.dtype)).exp() * weights
        weighted = e * gaps
        sums = (e, weighted, weighted * gaps)
        total, first, second = (each.sum(-1).double() for each in sums)
        total = total.clamp_min(TINY)
        slope, miss = -first / total, target + total.log()
        curvature = (second / total - slope * slope).clamp_min(0)
        below = miss > 0
        low, high = torch.where(below, b, low), torch.where(below, high, b)
        proposed = _follow_parabola(b, miss, slope, curvature)
        inside = (proposed >= low) & (proposed <= high)
        following = torch.where(inside, proposed, (low + high) / 2).clamp(FLAT, MAX_B)
        is_open = ((following - b).abs() > close * following).any()
        unchanged = (each.clone() for each in (target, gaps, weights))
        return (step + 1, is_open, following, low, high, *unchanged)

    state = (step, is_open, low.clone(), low, high, target, gaps, weights)
    if torch.__version__ >= LOOPS_SINCE:
        from torch._higher_order_ops import while_loop

        state = while_loop(goes_on, take_step, state)
    else:
        for _ in range(1 + FIXED_STEPS):
            state = take_step(*state)
    return torch.where(reach > 0, state[2] / unit, 1.0)


def _solve(gaps: _Gaps, goal: _Goal, b: PerSample) -> PerSample:
    """Steps from b inside a bracket that shrinks; rows that are done no longer take part."""
    found, index = b, None
    low, high = torch.zeros_like(b), 2 * goal.highest
    is_fixed, close = is_unsynchronised(b), CLOSE[gaps.logits.dtype]
    done = torch.zeros_like(b, dtype=torch.bool)
    for _ in range(FIXED_STEPS if is_fixed else MAX_STEPS):
        shape = gaps.at(b, index)
        below = shape.value < goal.target
        low, high = torch.where(below, b, low), torch.where(below, high, b)
        step = goal.propose(b, shape)
        inside = (step >= low) & (step <= high)
        following = torch.where(inside, step, (low + high) / 2).clamp(goal.lowest, goal.highest)
        moved = (following - b).abs() > close * following
        b = torch.where(done, b, following)
        done = done | ~moved
        if is_fixed:
            continue
        found = b if index is None else found.index_copy(0, index, b)
        left = (~done).nonzero().squeeze(-1)
        if not len(left):
            break
        if len(left) < FEWER * len(b):
            index = left if index is None else index[left]
            goal, b, low, high, done = goal.take(left), b[left], low[left], high[left], done[left]
    return b if is_fixed else found
