"""Log-odds of a class under softmax(z / T), without keeping an (n, c) array."""

import torch
from torch import Tensor

from rightly.calibrators.solvers.execution import (
    Scratch,
    exp_up_to_scale,
    iterate_chunks,
    scale_gaps,
)
from rightly.calibrators.solvers.fused import kernels_for
from rightly.calibrators.solvers.temperature import top_probability
from rightly.tensor_shapes import Features, Labels, Logits, PerSample

MAX_LOG_ODDS = 12.0  # one error in 160,000: no calibration set can tell more


def compute_top_log_odds(logits: Logits, classes: Labels, temperature: float | Tensor) -> PerSample:
    """Log-odds of these classes, which are those of the largest logits."""
    inverse = torch.as_tensor(temperature, dtype=torch.float64, device=logits.device).reciprocal()
    confidence = top_probability(logits, inverse.expand(logits.shape[0]), classes)
    return torch.logit(confidence).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)


def compute_log_odds(logits: Logits, classes: Labels, temperature: float | Tensor) -> Features:
    """Log-odds of these classes, of the likeliest other class and of the likeliest of all."""
    inverse, parts = torch.as_tensor(temperature, dtype=torch.float64).reciprocal(), []
    kernels = kernels_for(logits)
    if kernels is not None:
        odds: Features = kernels.log_odds(logits, classes, inverse.to(logits.device), MAX_LOG_ODDS)
        return odds
    compare = _compare_on_gpu if logits.is_cuda else _compare_in_cache
    scratch = Scratch()
    for rows in iterate_chunks(logits):
        z = logits[rows]
        ratio, rest = compare(z, classes[rows, None], inverse, scratch.take("gaps", z))
        parts.append((ratio.log() - rest.log()).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS))
    return torch.cat(parts)


def _compare_in_cache(
    z: Logits, chosen: Tensor, inverse: Tensor, scratch: Tensor | None
) -> tuple[Features, Features]:
    """exp(b z) of the chosen, the likeliest other and the likeliest class, and of all but it.

    A sum in float64 loses nothing to the largest.
    """
    ratios = exp_up_to_scale(scale_gaps(z, z.amax(-1, keepdim=True), inverse, scratch))
    total = ratios.sum(-1, keepdim=True, dtype=torch.float64)
    same = ratios.gather(-1, chosen)
    other = ratios.scatter_(-1, chosen, 0.0).amax(-1, keepdim=True)
    ratio = torch.cat([same, other, torch.maximum(same, other)], 1).double()
    return ratio, total - ratio


def _compare_on_gpu(
    z: Logits, chosen: Tensor, inverse: Tensor, scratch: Tensor | None
) -> tuple[Features, Features]:
    """The same with sums in float32, because a GPU would first copy all of z to float64.

    The two that may be large are added afterwards, so that no sum loses what is left to them.
    """
    top, where = z.max(-1, keepdim=True)
    ratios = scale_gaps(z, top, inverse, scratch).exp_()
    same, largest = (ratios.gather(-1, k).double() for k in (chosen, where))
    ratios.scatter_(-1, chosen, 0.0).scatter_(-1, where, 0.0)
    tail = ratios.sum(-1, keepdim=True).double()
    second = ratios.amax(-1, keepdim=True).double()
    agrees, zero = where == chosen, torch.zeros_like(tail)
    other = torch.where(agrees, second, largest)
    rest_of_same = tail + torch.where(agrees, zero, largest)
    rest_of_other = same + tail - torch.where(agrees, second, zero)
    likeliest = torch.where(agrees, same, other)
    rest_of_likeliest = torch.where(agrees, rest_of_same, rest_of_other)
    rest = torch.cat([rest_of_same, rest_of_other, rest_of_likeliest], 1)
    return torch.cat([same, other, likeliest], 1), rest
