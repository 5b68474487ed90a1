"""How softmax(z / T) moves with the temperature T.

With b = 1 / T, a sample's confidence depends on b through one sum over its classes. Write g for
the gap between its two largest logits and L(b) = log sum over the others of exp(b (z_j - z_2)).
Then logit(confidence) = b g - L(b): exact where softmax saturates, with no overflow, and L is
smooth in log b, so that a table of it replaces the sum over classes while a calibrator trains.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rightly.tensor_shapes import Features, Labels, Logits, PerSample

CHUNK = 2**19  # entries worked on at a time: two megabytes stay in a processor's cache
BLOCK = 1024  # samples that are compared with all others at a time
NODES_PER_OCTAVE = 2  # keeps the table's mean error in confidence below 1e-5
OCTAVES_PER_EXP = 4  # each squaring doubles the rounding error, so start afresh this often
NEGLIGIBLE = 1e-18  # beside a sum of at least 1; anything smaller would turn into slow subnormals
ONE_STEP = 2.0**-22  # of float32, and a little: what raises a number to the next larger one
TRACED_STEPS = 12  # of Newton's method in a graph, which cannot stop by itself: ten reach float64
FLAT = 1e-6  # a margin this small over uniform is all but uniform


def chunks(logits: Logits) -> Iterator[slice]:
    """Slices of rows small enough to stay in cache; all rows at once in a graph being traced."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    n, c = logits.shape
    rows = max(1, CHUNK // c)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def blocks(points: Features) -> Iterator[slice]:
    """The same for rows that are compared with as many others as there may be."""
    if torch.compiler.is_exporting():
        return iter([slice(None)])
    return (slice(start, start + BLOCK) for start in range(0, len(points), BLOCK))


def top_probability(logits: Logits, inverse: PerSample) -> PerSample:
    """Confidence after scaling each row's logits by its inverse temperature."""
    parts = []
    for rows in chunks(logits):
        z = logits[rows]
        gaps = (z - z.amax(-1, keepdim=True)) * inverse[rows, None].to(z.dtype)
        parts.append(gaps.exp_().sum(-1, dtype=torch.float64).reciprocal())
    return torch.cat(parts)


def scaled_softmax(logits: Logits, inverse: PerSample) -> Logits:
    """softmax(b z), row by row, in float64."""
    gaps = (logits - logits.amax(-1, keepdim=True)).double()
    return (gaps * inverse[:, None]).softmax(-1)


def keep_class(probabilities: Logits, classes: Labels) -> Logits:
    """Breaks ties in favour of the predicted class, by an amount that float32 can hold."""
    single = probabilities.float()
    lost = single.argmax(-1) != classes
    if not torch.compiler.is_exporting() and not lost.any():
        return probabilities
    above = (single.amax(-1) * (1 + ONE_STEP)).to(probabilities.dtype)
    raised = probabilities.scatter(1, classes[:, None], above[:, None])
    raised = raised / raised.sum(-1, keepdim=True)
    return torch.where(lost[:, None], raised, probabilities)


def _exp(exponents: Tensor) -> Tensor:
    """exp in place, with what cannot matter cut off."""
    return exponents.clamp_min_(math.log(NEGLIGIBLE)).exp_()


@dataclass(frozen=True)
class Moments:
    """log-sum-exp, mean and variance of the gaps z - max(z) under softmax(b z)."""

    log_sum: PerSample
    mean: PerSample
    variance: PerSample


def moments(logits: Logits, inverse: float) -> Moments:
    """The moments of every row at one inverse temperature, without keeping an (n, c) array."""
    parts = []
    for rows in chunks(logits):
        z = logits[rows]
        gaps = z - z.amax(-1, keepdim=True)
        e = _exp(gaps * inverse)
        total = e.sum(-1).double()
        e *= gaps
        first = e.sum(-1).double() / total
        second = torch.linalg.vecdot(e, gaps).double() / total
        parts.append((total.log(), first, (second - first.square()).clamp_min(0)))
    return Moments(*(torch.cat(column) for column in zip(*parts, strict=True)))


def typical_spread(logits: Logits) -> float:
    """How far the largest logit stands above its row's mean, on average: the scale of logits."""
    return float((logits.amax(-1) - logits.mean(-1)).double().mean())


@dataclass(frozen=True)
class TopTwo:
    """The largest and second largest logit of each row, and where the largest is."""

    top: PerSample
    second: PerSample
    where: Labels

    def take(self, rows: Tensor | slice) -> "TopTwo":
        return TopTwo(self.top[rows], self.second[rows], self.where[rows])


def top_two(logits: Logits) -> TopTwo:
    two = logits.topk(2)
    # topk may name another of several equal maxima than argmax; only the values are used of it.
    return TopTwo(two.values[:, 0], two.values[:, 1], logits.argmax(-1))


def log_sum_others(z: Tensor, rest: TopTwo, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """L(b) and its derivative for one chunk, with one b a row."""
    gaps = z - rest.second[:, None]
    e = _exp(gaps * inverse[:, None]).scatter_(1, rest.where[:, None], 0)
    total = e.sum(-1)
    gaps = gaps.scatter_(1, rest.where[:, None], 0)
    return total.log(), torch.linalg.vecdot(e, gaps) / total


def inverse_temperature_for(logits: Logits, confidence: PerSample) -> PerSample:
    """The inverse temperature at which softmax gives each row's class this confidence.

    b g - L(b) is concave and increasing in b, so Newton's method from b = 0 never overshoots.
    A confidence at or below 1 / c has no temperature: its row becomes all but uniform.
    """
    parts = []
    for rows in chunks(logits):
        z = logits[rows].double()
        c = z.shape[1]
        rest = top_two(z)
        gap = rest.top - rest.second
        wanted = torch.logit(confidence[rows].double().clamp(0.5 / c, 1 - 1e-13))
        slope = (rest.top - z.mean(-1)) * c / (c - 1)  # at b = 0: top minus mean of the others
        reach = slope.clamp_min(1e-300)
        lowest, highest = FLAT / reach, 1e6 / reach
        b = torch.zeros_like(gap)
        miss = wanted + math.log(c - 1)
        traced = torch.compiler.is_exporting()
        for _ in range(TRACED_STEPS if traced else 100):
            step = miss / slope.clamp_min(1e-300)
            b_next = (b + step).clamp(lowest, highest)
            done = not traced and bool(((b_next - b).abs() <= 1e-12 * b_next).all())
            b = b_next
            if done:
                break
            value, derivative = log_sum_others(z, rest, b)
            miss = wanted - (b * gap - value)
            slope = gap - derivative
        parts.append(torch.where(rest.top - z.mean(-1) > 0, b, torch.ones_like(b)))
    return torch.cat(parts)


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
    for rows in chunks(logits):
        z = logits[rows]
        rest = top_two(z)
        gap[rows] = (rest.top - rest.second).double()
        gaps = z - rest.second[:, None]
        for fraction in range(NODES_PER_OCTAVE):
            for octave, node in enumerate(range(fraction, count, NODES_PER_OCTAVE)):
                b = 2 ** (start + node / NODES_PER_OCTAVE)
                if octave % OCTAVES_PER_EXP == 0:
                    e = _exp(gaps * b).scatter_(1, rest.where[:, None], 0)
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


def log_sum(margin: Tensor) -> Tensor:
    """log sum_j exp(b (z_j - z_top)) from the logit of the confidence."""
    return functional.softplus(-margin, threshold=700)
