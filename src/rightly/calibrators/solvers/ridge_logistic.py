"""Ridge logistic regression on a few columns and a class, and Platt scaling, solved exactly."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.solvers.class_sums import ClassSums
from rightly.calibrators.solvers.newton import minimise
from rightly.tensor_shapes import Features, Labels, PerSample, PerSampleBool

PRECISION = 1e-10  # Newton's method stops when a step lowers the loss by less than this share
FREE = 1e-9  # a ridge penalty that leaves the bias free but the Hessian invertible


@dataclass(frozen=True)
class Rows:
    """A regression of correctness: design matrix, predicted class, response, sample weight."""

    design: Features
    classes: Labels
    correct: PerSampleBool
    weight: PerSample


def platt_targets(correct: PerSampleBool) -> PerSample:
    """(n+ + 1) / (n+ + 2) where right, 1 / (n- + 2) where wrong (Platt, 1999).

    This keeps the solution finite where the columns separate right from wrong.
    """
    right = correct.double().sum()
    wrong = correct.shape[0] - right
    return torch.where(correct, (right + 1) / (right + 2), 1 / (wrong + 2))


class Affine(NamedTuple):
    """logit = bias + slope * score."""

    slope: Tensor
    bias: Tensor

    @staticmethod
    def identity(score: PerSample) -> "Affine":
        return Affine(score.new_ones(()), score.new_zeros(()))

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

    def extend(self, like: Tensor) -> "Solution":
        """The solution with a weight of 0 for further columns, where that tensor is."""
        beyond = like.new_zeros(len(like) - len(self.weights))
        weights = torch.cat([self.weights.to(like), beyond])
        return Solution(self.bias.to(like), weights, self.offsets.to(like))

    def rescale(self, affine: Affine) -> "Solution":
        """The solution whose logits are that affine map of these."""
        bias = affine.bias + affine.slope * self.bias
        return Solution(bias, affine.slope * self.weights, affine.slope * self.offsets)


def fit_ridge_logistic(
    rows: Rows,
    penalty: Tensor,
    class_penalty: float,
    class_count: int,
    start: Solution | None = None,
) -> Solution:
    """Weights of standardised columns and an offset a class, L2-penalised; the bias is free.

    The loss is convex: a start near its minimum saves steps and changes nothing else.
    """
    share = rows.weight / rows.weight.sum()
    centre = share @ rows.design
    scale = (share @ (rows.design - centre).square()).sqrt()
    scale = torch.where(scale > 1e-9, scale, torch.ones_like(scale))
    x = (rows.design - centre) / scale
    begin = Solution(penalty.new_zeros(()), torch.zeros_like(penalty), x.new_zeros(class_count))
    if start is not None:
        begin = Solution(start.bias + centre @ start.weights, start.weights * scale, start.offsets)
    standardised = _solve_ridge(x, rows, penalty, class_penalty, begin)
    weights = standardised.weights / scale
    return Solution(standardised.bias - centre @ weights, weights, standardised.offsets)


def fit_platt(
    score: PerSample, correct: PerSampleBool, weight: PerSample, start: Affine | None = None
) -> Affine:
    """Slope and bias, both free, that turn scores into log-odds of being right (Platt, 1999).

    Where the slope would be negative, or all scores are equal, it is 0, and the bias that of the
    mean target. A start near the solution saves steps.
    """
    # A ridge penalty shares weight between columns that say the same, which is what lasts under
    # shift, but it also flattens the whole. And what ranks samples need not be learned from the
    # same mix of samples as how often they are right.
    if not bool((weight > 0).all()):
        used = weight > 0
        score, correct, weight = score[used], correct[used], weight[used]
    centre = (weight @ score) / weight.sum()
    x = score - centre
    targets = platt_targets(correct)
    level = torch.logit((weight @ targets) / weight.sum())
    if not bool(x.any()):  # one score, as of one sample, has no slope to be solved for
        return Affine(torch.zeros_like(centre), level)
    begin = torch.zeros(2, dtype=torch.float64)
    if start is not None:
        begin = torch.stack([start.slope, start.bias + start.slope * centre]).double().cpu()
    slope, bias = _solve_platt(x, targets, weight, begin).to(score)
    if not slope > 0:
        return Affine(torch.zeros_like(centre), level)
    return Affine(slope, bias - slope * centre)


def _solve_platt(x: PerSample, targets: PerSample, weight: PerSample, start: Tensor) -> Tensor:
    """Slope and bias by Newton's method, one pass over the samples a step."""

    def evaluate(point: Tensor) -> tuple[float, list[float]]:
        """The loss; its two derivatives and three second ones."""
        slope, bias = point.tolist()
        t = bias + slope * x
        p = t.sigmoid()
        residual, curvature = weight * (p - targets), (weight * p * (1 - p)).clamp_min_(1e-12)
        loss = weight @ (functional.softplus(t) - targets * t)
        curved = curvature * x
        sums = [loss, residual @ x, residual.sum(), curved @ x, curved.sum(), curvature.sum()]
        value, *derivatives = torch.stack(sums).tolist()
        return value, derivatives

    def solve_step(_: Tensor, derivatives: list[float]) -> Tensor | None:
        by_slope, by_bias, slopes, both, biases = derivatives
        determinant = slopes * biases - both * both
        if not determinant > 0:
            return None
        step = biases * by_slope - both * by_bias, slopes * by_bias - both * by_slope
        return start.new_tensor(step) / determinant

    return minimise(evaluate, solve_step, start, PRECISION)


def _solve_ridge(
    x: Features, rows: Rows, penalty: Tensor, class_penalty: float, begin: Solution
) -> Solution:
    """Newton's method, in which the offsets' part of the Hessian is diagonal."""
    design = torch.cat([torch.ones_like(x[:, :1]), x], 1)
    penalty = torch.cat([torch.full_like(penalty[:1], FREE), penalty])
    targets, weight, classes = platt_targets(rows.correct), rows.weight, rows.classes
    by_class = ClassSums.of(classes, len(begin.offsets))
    sizes = [len(penalty), len(begin.offsets)]

    def evaluate(point: Tensor) -> tuple[float, Tensor]:
        """The loss and log-odds."""
        beta, offsets = point.split(sizes)
        t = design @ beta + offsets[classes]
        fit = weight @ (functional.softplus(t) - targets * t)
        squares = penalty @ beta.square() + class_penalty * offsets.square().sum()
        return float(fit + 0.5 * squares), t

    def solve_step(point: Tensor, t: Tensor) -> Tensor:
        beta, offsets = point.split(sizes)
        p = t.sigmoid()
        residual, curvature = weight * (p - targets), (weight * p * (1 - p)).clamp_min_(1e-12)
        slope = design.T @ residual + penalty * beta
        class_slope = by_class(residual) + class_penalty * offsets
        curved = design * curvature[:, None]
        # The column of ones first: its sums are those of the curvature itself.
        cross = by_class(curved)
        class_curvature = cross[:, 0] + class_penalty
        scaled = cross / class_curvature[:, None]
        reduced = design.T @ curved + penalty.diag() - cross.T @ scaled
        # A processor solves a few equations sooner than a GPU begins to.
        system = torch.cat([reduced, (slope - scaled.T @ class_slope)[:, None]], 1).cpu()
        step = torch.linalg.solve(system[:, :-1], system[:, -1]).to(slope.device)
        return torch.cat([step, (class_slope - cross @ step) / class_curvature])

    start = torch.cat([begin.bias[None], begin.weights, begin.offsets])
    beta, offsets = minimise(evaluate, solve_step, start, PRECISION).split(sizes)
    return Solution(beta[0], beta[1:], offsets)
