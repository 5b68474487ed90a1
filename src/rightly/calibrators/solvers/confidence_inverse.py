"""The inverse temperature b = 1 / T at which softmax(b z) gives the top class a confidence.

With s(b) the sum over the other classes of exp(b (z_j - z_top)), logit(confidence) = -log s(b).
That is concave and increasing in b; its slope and curvature are the mean and variance of the gaps
under softmax among the others, so each step solves a parabola and its error falls as a cube.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import is_unsynchronised, iterate_chunks
from rightly.predictions.masking import MASKED, has_masked
from rightly.tensor_shapes import Labels, Logits, PerSample

# A step that is this small, relatively, leaves an error of about its cube.
CLOSE = {torch.float32: 3e-3, torch.float64: 1e-4}
FIXED_STEPS = 9  # in a graph or on a GPU, where looking whether to stop costs more than a step
MAX_STEPS = 60
LEAST_EXPONENT = -80.0  # smaller ones count as nothing; float32 holds exp of it in all its digits
FLAT = 1e-6  # a margin this small over uniform is all but uniform
MAX_CONFIDENCE = 1 - 1e-13
TINY = 1e-300


class Shape(NamedTuple):
    """logit(confidence) at some b, its slope and minus its curvature."""

    value: PerSample
    slope: PerSample
    curvature: PerSample


@dataclass(frozen=True)
class _Rows:
    """Gaps below the top class, 0 for classes that do not count, and where the solution lies."""

    gaps: Logits
    top: Tensor  # (n, 1)
    masked: Tensor | None
    target: PerSample
    lowest: PerSample
    highest: PerSample

    @staticmethod
    def of(z: Logits, top: Tensor, confidence: PerSample) -> tuple["_Rows", Shape]:
        """The rows, and their shape at b = 0."""
        gaps = z - z.gather(-1, top)
        masked = z <= MASKED if has_masked(z) else None
        others = torch.full_like(confidence, z.shape[1] - 1)
        if masked is not None:
            gaps = gaps.masked_fill(masked, 0)
            others = others - masked.sum(-1)
        others = others.clamp_min(1)
        slope = -gaps.sum(-1).double() / others
        second = torch.linalg.vecdot(gaps, gaps).double() / others
        flat = Shape(-others.log(), slope, (second - slope.square()).clamp_min(0))
        reach = slope.clamp_min(TINY)
        target = torch.logit(confidence.clamp(0.5 / z.shape[1], MAX_CONFIDENCE))
        return _Rows(gaps, top, masked, target, FLAT / reach, 1e6 / reach), flat

    def at(self, b: PerSample) -> Shape:
        e = (self.gaps * b[:, None].to(self.gaps.dtype)).clamp_min_(LEAST_EXPONENT).exp_()
        e = e.scatter_(1, self.top, 0)
        if self.masked is not None:
            e = e.masked_fill_(self.masked, 0)
        total = e.sum(-1).double().clamp_min(TINY)
        e *= self.gaps
        first = e.sum(-1).double() / total
        second = e.mul_(self.gaps).sum(-1).double() / total
        return Shape(-total.log(), -first, (second - first.square()).clamp_min(0))

    def propose(self, b: PerSample, shape: Shape) -> PerSample:
        """Where the parabola through this shape reaches the target."""
        miss = self.target - shape.value
        root = (shape.slope.square() - 2 * shape.curvature * miss).clamp_min(0).sqrt()
        return b + 2 * miss / (shape.slope + root).clamp_min(TINY)

    def take(self, rows: Tensor) -> "_Rows":
        return replace(
            self,
            gaps=self.gaps[rows],
            top=self.top[rows],
            masked=None if self.masked is None else self.masked[rows],
            target=self.target[rows],
            lowest=self.lowest[rows],
            highest=self.highest[rows],
        )


def inverse_temperature_for(
    logits: Logits, confidence: PerSample, classes: Labels | None = None
) -> PerSample:
    """The inverse temperature at which softmax gives each row's class this confidence.

    A confidence at or below 1 / c has no temperature: its row becomes all but uniform. Classes,
    where known, are those of the largest logits.
    """
    parts = []
    for chunk in iterate_chunks(logits):
        z = logits[chunk]
        top = z.argmax(-1) if classes is None else classes[chunk]
        rows, flat = _Rows.of(z, top[:, None], confidence[chunk].double())
        b = rows.propose(torch.zeros_like(rows.target), flat).clamp(rows.lowest, rows.highest)
        parts.append(torch.where(flat.slope > 0, _solve(rows, b), torch.ones_like(b)))
    return torch.cat(parts)


def _solve(rows: _Rows, b: PerSample) -> PerSample:
    """Steps from b inside a bracket that shrinks; rows that are done no longer take part."""
    found, index = b, None
    low, high = torch.zeros_like(b), 2 * rows.highest
    is_fixed, close = is_unsynchronised(b), CLOSE[rows.gaps.dtype]
    done = torch.zeros_like(b, dtype=torch.bool)
    for _ in range(FIXED_STEPS if is_fixed else MAX_STEPS):
        shape = rows.at(b)
        below = shape.value < rows.target
        low, high = torch.where(below, b, low), torch.where(below, high, b)
        step = rows.propose(b, shape)
        inside = (step >= low) & (step <= high)
        following = torch.where(inside, step, (low + high) / 2).clamp(rows.lowest, rows.highest)
        moved = (following - b).abs() > close * following
        b = torch.where(done, b, following)
        done = done | ~moved
        if is_fixed:
            continue
        found = b if index is None else found.index_copy(0, index, b)
        left = (~done).nonzero().squeeze(-1)
        if not len(left):
            break
        if 2 * len(left) < len(b):
            index = left if index is None else index[left]
            rows, b, low, high, done = rows.take(left), b[left], low[left], high[left], done[left]
    return b if is_fixed else found
