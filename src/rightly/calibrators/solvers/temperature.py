"""softmax(b z) at inverse temperatures b = 1 / T, and the b that minimises a loss.

Cross-entropy is convex in b (Guo et al., 2017), so it is solved exactly, by Newton's method. Other
losses are searched around its minimum.
"""

import math
from dataclasses import dataclass

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from rightly.calibrators.solvers.execution import (
    Scratch,
    allocate_like,
    exp_up_to_scale,
    is_unsynchronised,
    iterate_chunks,
    scale_gaps,
)
from rightly.calibrators.solvers.fused import kernels_for
from rightly.calibrators.solvers.newton import find_root
from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.losses import Loss, cross_entropy
from rightly.predictions.masking import MASKED, fill_masked
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

MAX_SCALE_RATIO = 1e3  # b times the scale of logits stays within 1/1000 .. 1000: flat .. one-hot
SUBSAMPLE = 4096  # samples that place the first guess within a percent or two
SMALL_MOVE = 3e-5  # relative: the error left after such a step of Newton's method is 1e-9
ROUGH_MOVE = 1e-2  # the same for a first guess, which a subsample does not place any better
OCTAVES = 6  # a loss other than cross-entropy is searched this far around cross-entropy's b
WIDEST = 32  # how far from a first guess a minimum is searched, over how far off it should be
ONE_STEP = 2.0**-22  # of float32, and a little: what raises a number to the next larger one


def top_probability(
    logits: Logits,
    inverse: PerSample,
    classes: Labels | None = None,
    scratch: Scratch | None = None,
) -> PerSample:
    """Confidence after scaling each row's logits by its inverse temperature.

    Classes, where known, are those of the largest logits. The sum over the others keeps its
    digits however small it is, also in float32.
    """
    if logits.requires_grad:  # in place nothing can be differentiated
        return scaled_softmax(logits, inverse).amax(-1)
    if torch.compiler.is_exporting():
        is_top = mark_class(logits, logits.argmax(-1) if classes is None else classes)
        gaps = logits - logits.amax(-1, keepdim=True)
        e = (gaps * inverse[:, None].to(logits.dtype)).exp()
        return (1 + torch.where(is_top, 0.0, e).sum(-1).double()).reciprocal()
    kernels = kernels_for(logits)
    if kernels is not None:
        top = logits.argmax(-1) if classes is None else classes
        confidence: PerSample = kernels.top_probability(logits, top, inverse)
        return confidence
    parts, scratch = [], scratch or Scratch()
    for rows in iterate_chunks(logits):
        z = logits[rows]
        top = (z.argmax(-1) if classes is None else classes[rows])[:, None]
        b = inverse[rows, None].to(z.dtype)
        e = exp_up_to_scale(scale_gaps(z, z.gather(1, top), b, scratch.take("gaps", z)))
        largest = e.gather(1, top).squeeze(1).double()
        others = e.scatter_(1, top, 0).sum(-1)
        parts.append((1 + others.double() / largest).reciprocal())
    return torch.cat(parts)


def mark_class(logits: Logits, classes: Labels) -> Tensor:
    """A mask of each row's class."""
    return torch.arange(logits.shape[1], device=logits.device) == classes[:, None]


def scaled_softmax(logits: Logits, inverse: PerSample) -> Logits:
    """softmax(b z), row by row, in float64; its exponentials are those of the logits' type."""
    if torch.compiler.is_exporting() or logits.requires_grad:
        gaps = (logits - logits.amax(-1, keepdim=True)).double()
        return torch.where(logits > MASKED, gaps * inverse[:, None], -torch.inf).softmax(-1)
    probabilities, scratch = allocate_like(logits), Scratch()
    for rows in iterate_chunks(logits):
        z = logits[rows]
        b, largest = inverse[rows, None].to(z.dtype), z.amax(-1, keepdim=True)
        gaps = scale_gaps(z, largest, b, scratch.take("gaps", z))
        e = probabilities[rows].copy_(exp_up_to_scale(gaps))
        e.mul_(e.sum(-1, keepdim=True).reciprocal_())
    return probabilities


def keep_class(probabilities: Logits, classes: Labels) -> Logits:
    """Breaks ties in favour of the predicted class, by an amount that float32 can hold.

    In place, except in a graph being traced: to copy all of them takes as long as to compute them.
    """
    if torch.compiler.is_exporting():
        is_class = mark_class(probabilities, classes)
        largest = torch.where(is_class, 0.0, probabilities).amax(-1, keepdim=True)
        # A sum, since exporters take a factor so close to 1 for 1.
        least = largest + largest * ONE_STEP
        return torch.where(is_class, torch.maximum(probabilities, least), probabilities)
    kept = probabilities.contiguous()  # a copy where rows share their memory
    parts = [_find_near_ties(kept[rows], classes[rows]) for rows in iterate_chunks(kept)]
    near_ties = torch.cat(parts).nonzero().squeeze(-1)
    lost = near_ties[kept[near_ties].float().argmax(-1) != classes[near_ties]]
    if len(lost):
        kept[lost] = _raise_class(kept[lost], classes[lost])
    return kept


def _find_near_ties(probabilities: Logits, classes: Labels) -> PerSampleBool:
    """Rows in which another class comes first or so close that float32 may not tell.

    The class is taken out and put back, because a search for the largest other one takes a
    quarter of the time of argmax.
    """
    chosen = classes[:, None]
    own = probabilities.gather(1, chosen)
    others = probabilities.scatter_(1, chosen, -1).amax(-1)
    probabilities.scatter_(1, chosen, own)
    return others >= own.squeeze(-1) * (1 - ONE_STEP)


def _raise_class(probabilities: Logits, classes: Labels) -> Logits:
    above = (probabilities.float().amax(-1) * (1 + ONE_STEP)).to(probabilities.dtype)
    raised = probabilities.scatter(1, classes[:, None], above[:, None])
    return raised / raised.sum(-1, keepdim=True)


@dataclass(frozen=True)
class Moments:
    """Mean and variance of the gaps z - max(z) under softmax(b z)."""

    mean: PerSample
    variance: PerSample


def compute_moments(logits: Logits, inverse: float) -> Moments:
    """The moments of every row at one inverse temperature, without keeping an (n, c) array."""
    parts, scratch = [], Scratch()
    for rows in iterate_chunks(logits):
        z = logits[rows]
        b = torch.full((), inverse, dtype=z.dtype, device=z.device)
        gaps = torch.sub(z, z.amax(-1, keepdim=True), out=scratch.take("gaps", z))
        e = exp_up_to_scale(torch.mul(gaps, b, out=scratch.take("e", z)))
        total = e.sum(-1).double()
        # The exponential first: it is 0 where the square of a masked class's gap is huge.
        first = e.mul_(gaps).sum(-1).double() / total
        second = e.mul_(gaps).sum(-1).double() / total
        parts.append((first, (second - first.square()).clamp_min(0)))
    return Moments(*(torch.cat(column) for column in zip(*parts, strict=True)))


def take_subsample(logits: Logits, labels: Labels) -> tuple[Tensor, Tensor]:
    """A few thousand of the samples, at equal distances."""
    step = max(1, len(logits) // SUBSAMPLE)
    return logits[::step], labels[::step]


def nll_inverse_temperature(
    logits: Logits, labels: Labels, small_move: float = SMALL_MOVE
) -> float:
    """The inverse temperature that minimises cross-entropy, which is convex in it.

    Newton's method inside a bracket, first on a few thousand samples, so that two or three passes
    over all of them suffice.
    """
    kernels = kernels_for(logits)
    if kernels is not None:
        precision = SUBSAMPLE, ROUGH_MOVE, small_move
        found: float = kernels.search_inverse_temperature(
            logits, labels, *precision, MAX_SCALE_RATIO
        )
        return found
    # The scale of logits: how far the largest stands above its row's mean, on average.
    largest = logits.amax(-1)
    true_gap = logits.gather(-1, labels[:, None]).squeeze(-1) - largest
    scale, true_mean = _average(largest - fill_masked(logits).mean(-1), true_gap)
    if scale == 0:
        return 1.0  # every row is constant: no temperature changes anything
    lowest, highest = 1 / (MAX_SCALE_RATIO * scale), MAX_SCALE_RATIO / scale
    start = 1.0 / scale
    if len(logits) >= 2 * SUBSAMPLE:
        start = nll_inverse_temperature(*take_subsample(logits, labels), ROUGH_MOVE)

    def differentiate(b: float) -> tuple[float, float]:
        """The slope and curvature of cross-entropy."""
        at_b = compute_moments(logits, b)
        mean, curvature = _average(at_b.mean, at_b.variance)
        return mean - true_mean, curvature

    return find_root(differentiate, start, (lowest, highest), small_move)


def _average(*columns: PerSample) -> list[float]:
    """Means that do not depend on the number of threads; a GPU is waited for once for all."""
    if is_unsynchronised(columns[0]):
        return torch.stack([column.double().mean() for column in columns]).tolist()
    return [float(column.double().numpy().mean()) for column in columns]


def fit_inverse_temperature(logits: Logits, labels: Labels, loss: Loss) -> float:
    """The inverse temperature that minimises a loss: approximated on a subsample, then on all."""
    if loss.name == cross_entropy.name:
        return nll_inverse_temperature(logits, labels)
    near = approximate_inverse_temperature(logits, labels, loss)
    reach = 0.01 if len(logits) < 2 * SUBSAMPLE else 0.04
    return _refine(CalibrationData.exact(logits, labels), loss, near, reach)


def approximate_inverse_temperature(
    logits: Logits, labels: Labels, loss: Loss = cross_entropy
) -> float:
    """The inverse temperature that is best for a few thousand of the samples."""
    logits, labels = take_subsample(logits, labels)
    start = nll_inverse_temperature(logits, labels, ROUGH_MOVE)
    if loss.name == cross_entropy.name:
        return start
    low, high = start / 2**OCTAVES, start * 2**OCTAVES
    return _search(CalibrationData.of(logits, labels, low, high), loss, low, high)


def _refine(data: CalibrationData, loss: Loss, near: float, reach: float) -> float:
    """The minimum of a loss near an inverse temperature b: the root of its slope in log b."""

    def slope_at(b: float) -> tuple[float, None]:
        x = torch.tensor(math.log(b), dtype=torch.float64, device=data.below_top.device)
        with torch.enable_grad():
            value = loss.of(data.scores(x.requires_grad_().expand(len(data.below_top))))
        return float(torch.autograd.grad(value, x)[0]), None

    bracket = near / math.exp(WIDEST * reach), near * math.exp(WIDEST * reach)
    return find_root(slope_at, near, bracket, 0.1 * reach, reach / 4)


def _search(data: CalibrationData, loss: Loss, low: float, high: float) -> float:
    """The minimum of a loss between two inverse temperatures: a grid, then Brent's method."""

    def loss_at(log_inverse: float) -> float:
        return float(loss.of(data.scores(torch.full_like(data.below_top, log_inverse))))

    grid = torch.linspace(math.log(low), math.log(high), 4 * OCTAVES + 1).tolist()
    best = min(range(len(grid)), key=lambda i: loss_at(grid[i]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return math.exp(result.x)
