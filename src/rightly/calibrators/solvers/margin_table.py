"""A table of every sample's margin, logit(confidence), as a function of its inverse temperature.

With b = 1 / T, g the gap between the two largest logits and L(b) = log sum over the others of
exp(b (z_j - z_2)), it is b g - L(b): exact where softmax saturates, with no overflow, and L is
smooth in log b, so that a table of it replaces the sum over classes while a calibrator trains.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.solvers.execution import (
    Scratch,
    exp_up_to_scale,
    iterate_chunks,
)
from rightly.tensor_shapes import Labels, Logits, PerSample

NEGLIGIBLE = 1e-18  # beside a sum of at least 1; anything smaller would turn into slow subnormals
NODES_PER_OCTAVE = 2  # keeps the table's mean error in confidence below 1e-5
OCTAVES_PER_EXP = 4  # each squaring doubles the rounding error, so start afresh this often


@dataclass(frozen=True)
class TopTwo:
    """The largest and second largest logit of each row, and where the largest is."""

    top: PerSample
    second: PerSample
    where: Labels

    def take(self, rows: Tensor | slice) -> "TopTwo":
        return TopTwo(self.top[rows], self.second[rows], self.where[rows])


def top_two(logits: Logits) -> TopTwo:
    parts, scratch = [], Scratch()
    for rows in iterate_chunks(logits):
        z = logits[rows]
        top, where = z.max(-1)
        others = scratch.copy("others", z).scatter_(1, where[:, None], -torch.inf)
        parts.append((top, others.amax(-1), where))
    return TopTwo(*(torch.cat(column) for column in zip(*parts, strict=True)))


def log_sum_others(
    z: Tensor, leading: TopTwo, inverse: Tensor, scratch: Scratch
) -> tuple[Tensor, Tensor]:
    """L(b) and its derivative for one chunk, with one b a row."""
    gaps = torch.sub(z, leading.second[:, None], out=scratch.take("gaps", z))
    exponents = torch.mul(gaps, inverse[:, None], out=scratch.take("e", z))
    e = exp_up_to_scale(exponents.scatter_(1, leading.where[:, None], -torch.inf))
    total, largest = e.sum(-1), e.amax(-1)  # the largest is the second class's, whose exponent is 0
    return (total / largest).log(), e.mul_(gaps).sum(-1) / total


def log_sum(margin: Tensor) -> Tensor:
    """log sum_j exp(b (z_j - z_top)) from the margin, the logit of the confidence."""
    return functional.softplus(-margin, threshold=700)


@dataclass(frozen=True)
class Table:
    """L of every row on a grid of log b, with its slope: what training needs instead of logits."""

    start: float  # log2 b of the first node
    values: Tensor  # (n, nodes, 2): L, and its derivative by the node number
    gap: Tensor  # (n,): largest minus second largest logit

    def margin(self, log_inverse: PerSample) -> PerSample:
        """logit(confidence) of every row at log b, differentiable in log b."""
        node = (log_inverse / math.log(2) - self.start) * NODES_PER_OCTAVE
        return log_inverse.exp() * self.gap - _Hermite.apply(node, self.values)

    def take(self, rows: Tensor) -> "Table":
        return Table(self.start, self.values[rows], self.gap[rows])


def tabulate(logits: Logits, low: float, high: float) -> Table:
    """Tabulates L for inverse temperatures from low to high; five softmax passes in all."""
    start = math.floor(math.log2(low) * NODES_PER_OCTAVE) / NODES_PER_OCTAVE
    octaves = math.ceil(math.log2(high) - start)
    n, count = len(logits), octaves * NODES_PER_OCTAVE + 1
    values = logits.new_empty(n, count, 2)
    gap = logits.new_empty(n, dtype=torch.float64)
    per_node = math.log(2) / NODES_PER_OCTAVE
    for rows in iterate_chunks(logits):
        z = logits[rows]
        leading = top_two(z)
        gap[rows] = (leading.top - leading.second).double()
        gaps = z - leading.second[:, None]
        for fraction in range(NODES_PER_OCTAVE):
            for octave, node in enumerate(range(fraction, count, NODES_PER_OCTAVE)):
                b = 2 ** (start + node / NODES_PER_OCTAVE)
                if octave % OCTAVES_PER_EXP == 0:
                    e = (gaps * b).clamp_min_(math.log(NEGLIGIBLE)).exp_()
                    e.scatter_(1, leading.where[:, None], 0)
                else:
                    e *= e  # exp(2 b gap): a square is thirteen times cheaper than an exponential
                    e.clamp_min_(NEGLIGIBLE)
                total = e.sum(-1)
                values[rows, node, 0] = total.log()
                values[rows, node, 1] = torch.linalg.vecdot(e, gaps) / total * (b * per_node)
    return Table(start, values, gap)


class _Hermite(torch.autograd.Function):
    """Cubic interpolation between the two nodes around each sample's own place in the table."""

    @staticmethod
    def forward(ctx: Any, node: Tensor, values: Tensor) -> Tensor:
        last = values.shape[1] - 2
        cell = node.floor().clamp(0, last).long()
        t = (node - cell).clamp(0, 1)
        index = torch.arange(len(node), device=node.device) * values.shape[1] + cell
        flat = values.reshape(-1, 2)
        left, right = flat[index].double(), flat[index + 1].double()
        rise, s0, s1 = right[:, 0] - left[:, 0], left[:, 1], right[:, 1]
        square, cube = 3 * rise - 2 * s0 - s1, s0 + s1 - 2 * rise
        ctx.save_for_backward(s0 + t * (2 * square + 3 * t * cube))
        return left[:, 0] + t * (s0 + t * (square + t * cube))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope, None
