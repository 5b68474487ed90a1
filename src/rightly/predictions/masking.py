"""Classes that a sample cannot have: their logits are -inf, or finfo.min, or -1e9 as in attention.

Inside Predictions all of these are MASKED, a finite number that float32 holds exactly, so that
no arithmetic ends in NaN: its softmax is exactly 0 at every temperature below a million.
Calibrators leave such classes out of means over a row (`fill_masked`) and give them probability 0
(`exclude_masked`). All functions here can be traced into a graph.
"""

import torch
from torch import Tensor

from rightly.tensor_shapes import Labels, Logits, PerSample

MASKED = -1e9  # a logit of this or less; 5^9 2^9, which float32 holds exactly
HALF_MASKED = torch.finfo(torch.float16).min  # of logits that come in float16


def has_masked(logits: Tensor) -> bool:
    """Whether to treat any logit as masked: looked up, but always so in a graph being traced."""
    return torch.compiler.is_exporting() or bool(logits.amin() <= MASKED)


def bound_masked(logits: Tensor) -> Tensor:
    """The same logits with MASKED for -inf and everything below it."""
    return logits.clamp_min(MASKED)


def bound_half(logits: Tensor) -> Tensor:
    """Logits that came in float16, with MASKED for its lowest number."""
    return torch.where(logits <= HALF_MASKED, MASKED, logits)


def check_range(name: str, logits: Tensor) -> None:
    """Refuses logits, of images or views, that are too large or leave a row without a class."""
    too_large = (logits >= -MASKED).flatten(1).any(1)
    if too_large.any():
        raise ValueError(
            f"{name} must lie below {-MASKED:g}, got {float(logits.max()):g} in row "
            f"{int(too_large.nonzero()[0])}: no scores before softmax are as large; look for a "
            "network that diverged, or divide them all"
        )
    impossible = (logits <= MASKED).all(-1).reshape(len(logits), -1).any(1)
    if impossible.any():
        raise ValueError(
            f"{name} must leave each row a class, but all of row {int(impossible.nonzero()[0])} "
            f"are -inf or below {MASKED:g}, which stands for classes that cannot be: drop that row"
        )


def check_possible(labels: Labels, logits: Logits) -> None:
    """Refuses true classes that are masked."""
    masked = logits.gather(-1, labels[:, None]).squeeze(-1) <= MASKED
    if masked.any():
        row = int(masked.nonzero()[0])
        raise ValueError(
            f"labels must be classes that their rows can have, but in {int(masked.sum())} rows, "
            f"the first of them row {row}, the logit of the true class ({int(labels[row])}) is "
            "masked (-inf): mend the mask or the label, or drop the row"
        )


def fill_masked(logits: Logits) -> Logits:
    """The same logits with the mean of the row's others for masked ones: no mean is moved."""
    if not has_masked(logits):
        return logits
    masked = logits <= MASKED
    count = (~masked).sum(-1, keepdim=True).clamp_min(1)
    mean = torch.where(masked, torch.zeros_like(logits), logits).sum(-1, keepdim=True) / count
    return torch.where(masked, mean, logits)


def count_possible(logits: Logits) -> PerSample:
    """How many classes of each row are not masked, as a float64."""
    return (logits > MASKED).double().sum(-1)


def exclude_masked(probabilities: Logits, logits: Logits) -> Logits:
    """The same probabilities with exactly 0 for masked classes, which the others share."""
    kept = torch.where(logits <= MASKED, torch.zeros_like(probabilities), probabilities)
    total = kept.sum(-1, keepdim=True)
    # Where nothing is left of a row, all of it goes to its likeliest class.
    likeliest = (logits == logits.amax(-1, keepdim=True)).to(kept.dtype)
    kept = torch.where(total > 0, kept, likeliest)
    shared = kept / kept.sum(-1, keepdim=True)
    # Rows without masked classes keep their digits.
    return torch.where((logits <= MASKED).any(-1, keepdim=True), shared, probabilities)


def settle_confidence(confidence: PerSample, logits: Logits) -> PerSample:
    """The same confidence, but 1 where all other classes are masked."""
    return torch.where(count_possible(logits) > 1, confidence, 1.0)
