"""Ridge logistic regression on a few columns and a class, and Platt scaling, solved exactly."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rightly.tensor_shapes import Features, Labels, PerSample, PerSampleBool

STEPS = 50
PRECISION = 1e-10  # Newton's method stops when a step lowers the loss by less than this share
FIXED = 1e9  # a ridge penalty that leaves a class offset at 0
FREE = 1e-9  # and one that leaves the bias free but the Hessian invertible


@dataclass(frozen=True)
class Rows:
    """A regression of correctness: design matrix, predicted class, response, sample weight."""

    design: Features
    classes: Labels
    correct: PerSampleBool
    weight: PerSample

    def platt_targets(self) -> PerSample:
        """(n+ + 1) / (n+ + 2) where right, 1 / (n- + 2) where wrong (Platt, 1999).

        This keeps the solution finite where the columns separate right from wrong.
        """
        right = self.correct.double().sum()
        wrong = self.correct.shape[0] - right
        return torch.where(self.correct, (right + 1) / (right + 2), 1 / (wrong + 2))


class Affine(NamedTuple):
    """logit = bias + slope * score."""

    slope: Tensor
    bias: Tensor

    def __call__(self, score: PerSample) -> PerSample:
        return self.bias + self.slope * score


@dataclass(frozen=True)
class Solution:
    """logit = bias + design @ weights + offsets[class]."""

    bias: Tensor
    weights: Tensor
    offsets: Tensor

    def logits(self, design: Features, classes: Labels) -> PerSample:
        return self.bias + design @ self.weights + self.offsets[classes]

    def rescale(self, affine: Affine) -> "Solution":
        """The solution whose logits are that affine map of these."""
        bias = affine.bias + affine.slope * self.bias
        return Solution(bias, affine.slope * self.weights, affine.slope * self.offsets)


def fit_ridge_logistic(
    rows: Rows, penalty: Tensor, class_penalty: float, class_count: int
) -> Solution:
    """Weights of standardised columns and an offset a class, L2-penalised; the bias is free."""
    share = rows.weight / rows.weight.sum()
    centre = share @ rows.design
    scale = (share @ (rows.design - centre).square()).sqrt()
    scale = torch.where(scale > 1e-9, scale, torch.ones_like(scale))
    x = (rows.design - centre) / scale
    standardised = _solve_newton(x, rows, penalty, class_penalty, class_count)
    weights = standardised.weights / scale
    return Solution(standardised.bias - centre @ weights, weights, standardised.offsets)


def fit_platt(score: PerSample, correct: PerSampleBool, weight: PerSample) -> Affine:
    """Slope and bias, both free, that turn scores into log-odds of being right (Platt, 1999).

    Where the slope would be negative, or all scores are equal, it is 0, and the bias that of the
    mean target.
    """
    # A ridge penalty shares weight between columns that say the same, which is what lasts under
    # shift, but it also flattens the whole. And what ranks samples need not be learned from the
    # same mix of samples as how often they are right.
    used = weight > 0
    score, correct, weight = score[used], correct[used], weight[used]
    centre = (weight @ score) / weight.sum()
    column = (score - centre)[:, None]
    free = torch.zeros(1, dtype=score.dtype, device=score.device)
    # One class with an immovable offset: a bias and one column are all that is left.
    rows = Rows(column, torch.zeros_like(correct, dtype=torch.int64), correct, weight)
    level = Affine(
        torch.zeros_like(centre),
        torch.logit((weight @ rows.platt_targets()) / weight.sum()),
    )
    if not bool(column.any()):  # one score, as of one sample, has no slope to be solved for
        return level
    solution = _solve_newton(column, rows, free, FIXED, 1)
    slope = solution.weights[0]
    if not bool(slope > 0):
        return level
    return Affine(slope, solution.bias - slope * centre)


def _solve_newton(
    x: Features, rows: Rows, penalty: Tensor, class_penalty: float, class_count: int
) -> Solution:
    """Newton's method with halved steps; the offsets' part of the Hessian is diagonal."""
    design = torch.cat([torch.ones_like(x[:, :1]), x], 1)
    penalty = torch.cat([torch.full_like(penalty[:1], FREE), penalty])
    targets, weight, classes = rows.platt_targets(), rows.weight, rows.classes
    beta = torch.zeros_like(penalty)
    offsets = torch.zeros(class_count, dtype=x.dtype, device=x.device)

    def loss(beta: Tensor, offsets: Tensor) -> Tensor:
        t = design @ beta + offsets[classes]
        fit = weight @ (functional.softplus(t) - targets * t)
        return fit + 0.5 * (penalty @ beta.square() + class_penalty * offsets.square().sum())

    value = loss(beta, offsets)
    for _ in range(STEPS):
        p = (design @ beta + offsets[classes]).sigmoid()
        residual, curvature = weight * (p - targets), (weight * p * (1 - p)).clamp_min(1e-12)
        slope = design.T @ residual + penalty * beta
        class_slope = offsets.new_zeros(class_count).index_add(0, classes, residual)
        class_slope = class_slope + class_penalty * offsets
        curved = design * curvature[:, None]
        class_curvature = offsets.new_zeros(class_count).index_add(0, classes, curvature)
        class_curvature = class_curvature + class_penalty
        cross = design.new_zeros(class_count, design.shape[1]).index_add(0, classes, curved)
        scaled = cross / class_curvature[:, None]
        reduced = design.T @ curved + penalty.diag() - cross.T @ scaled
        step = torch.linalg.solve(reduced, slope - scaled.T @ class_slope)
        class_step = (class_slope - cross @ step) / class_curvature
        length, lower = 1.0, loss(beta - step, offsets - class_step)
        while lower > value and length > 1e-6:
            length /= 2
            lower = loss(beta - length * step, offsets - length * class_step)
        beta, offsets = beta - length * step, offsets - length * class_step
        if value - lower <= PRECISION * value.abs():
            break
        value = lower
    return Solution(beta[0], beta[1:], offsets)
