"""Logistic regression on a few columns and a class, solved exactly."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rightly.tensor_shapes import Features, Labels, PerSample, PerSampleBool

STEPS = 50
PRECISION = 1e-10  # Newton's method stops when a step lowers the loss by less than this share


@dataclass(frozen=True)
class Rows:
    """What is known about samples: columns of evidence, the class predicted, whether it is right.

    The weights say how much each sample counts.
    """

    evidence: Features
    classes: Labels
    correct: PerSampleBool
    weight: PerSample

    def truth(self) -> PerSample:
        """1 where right, 0 where wrong, each moved in as if one more of the other had been seen.

        This keeps the solution finite where the evidence separates the two (Platt, 1999).
        """
        right = self.correct.double().sum()
        wrong = self.correct.shape[0] - right
        return torch.where(self.correct, (right + 1) / (right + 2), 1 / (wrong + 2))


@dataclass(frozen=True)
class Solution:
    """logit = bias + evidence @ weights + offsets[class]."""

    bias: Tensor
    weights: Tensor
    offsets: Tensor

    def logits(self, evidence: Features, classes: Labels) -> PerSample:
        return self.bias + evidence @ self.weights + self.offsets[classes]

    def along(self, line: "Line") -> "Solution":
        """The same with its logits on that line."""
        bias = line.bias + line.slope * self.bias
        return Solution(bias, line.slope * self.weights, line.slope * self.offsets)


class Line(NamedTuple):
    """logit = bias + slope * score."""

    slope: Tensor
    bias: Tensor

    def __call__(self, score: PerSample) -> PerSample:
        return self.bias + self.slope * score


def fit_ridge_logistic(
    rows: Rows, held_back: Tensor, class_held_back: float, class_count: int
) -> Solution:
    """The weights of standardised evidence and one offset a class, both held back, bias free."""
    share = rows.weight / rows.weight.sum()
    centre = share @ rows.evidence
    spread = (share @ (rows.evidence - centre).square()).sqrt()
    spread = torch.where(spread > 1e-9, spread, torch.ones_like(spread))
    x = (rows.evidence - centre) / spread
    found = _newton(x, rows, held_back, class_held_back, class_count)
    weights = found.weights / spread
    return Solution(found.bias - centre @ weights, weights, found.offsets)


def fit_platt(score: PerSample, correct: PerSampleBool, weight: PerSample) -> Line:
    """The slope and bias, both free, that turn scores into log-odds of being right.

    Holding back shares what columns know in common between them, which is what lasts under
    shift, but it also flattens the whole. And what ranks samples need not be learned from the
    same mix of samples as how often they are right.
    """
    used = weight > 0
    score, correct, weight = score[used], correct[used], weight[used]
    centre = (weight @ score) / weight.sum()
    column = (score - centre)[:, None]
    none = torch.zeros(1, dtype=score.dtype, device=score.device)
    # One class with an immovable offset: a bias and one column are all that is left.
    together = Rows(column, torch.zeros_like(correct, dtype=torch.int64), correct, weight)
    found = _newton(column, together, none, 1e9, 1)
    slope = found.weights[0].clamp_min(0)
    return Line(slope, found.bias - slope * centre)


def _newton(
    x: Features, rows: Rows, held_back: Tensor, class_held_back: float, class_count: int
) -> Solution:
    """Newton's method with halved steps; the offsets' part of the Hessian is diagonal."""
    ones = torch.cat([torch.ones_like(x[:, :1]), x], 1)
    penalty = torch.cat([torch.full_like(held_back[:1], 1e-9), held_back])
    truth, weight, classes = rows.truth(), rows.weight, rows.classes
    beta = torch.zeros_like(penalty)
    offsets = torch.zeros(class_count, dtype=x.dtype, device=x.device)

    def loss(beta: Tensor, offsets: Tensor) -> Tensor:
        t = ones @ beta + offsets[classes]
        fit = weight @ (functional.softplus(t) - truth * t)
        return fit + 0.5 * (penalty @ beta.square() + class_held_back * offsets.square().sum())

    value = loss(beta, offsets)
    for _ in range(STEPS):
        p = (ones @ beta + offsets[classes]).sigmoid()
        miss, curve = weight * (p - truth), (weight * p * (1 - p)).clamp_min(1e-12)
        slope = ones.T @ miss + penalty * beta
        class_slope = offsets.new_zeros(class_count).index_add(0, classes, miss)
        class_slope = class_slope + class_held_back * offsets
        curved = ones * curve[:, None]
        class_curve = offsets.new_zeros(class_count).index_add(0, classes, curve) + class_held_back
        cross = ones.new_zeros(class_count, ones.shape[1]).index_add(0, classes, curved)
        scaled = cross / class_curve[:, None]
        reduced = ones.T @ curved + penalty.diag() - cross.T @ scaled
        step = torch.linalg.solve(reduced, slope - scaled.T @ class_slope)
        class_step = (class_slope - cross @ step) / class_curve
        length, lower = 1.0, loss(beta - step, offsets - class_step)
        while lower > value and length > 1e-6:
            length /= 2
            lower = loss(beta - length * step, offsets - length * class_step)
        beta, offsets = beta - length * step, offsets - length * class_step
        if value - lower <= PRECISION * value.abs():
            break
        value = lower
    return Solution(beta[0], beta[1:], offsets)
