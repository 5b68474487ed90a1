"""Softmax regression near the identity, solved to convergence in float64.

The scores are W x + b, with W a matrix or a diagonal. What is minimised is convex:

    mean cross-entropy + d Σ (w_jj - 1)² + o Σ_{j≠k} w_jk² + i Σ b_j²

A few parameters are found by Newton's method, many by L-BFGS.
"""

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rightly.calibrators.solvers import lbfgs
from rightly.calibrators.solvers.execution import iterate_chunks
from rightly.calibrators.solvers.lbfgs import Minimum
from rightly.calibrators.solvers.newton import minimise
from rightly.tensor_shapes import Labels, Logits

FREE = 1e-7  # a penalty that changes nothing but keeps the solution finite
FEW = 256  # parameters: the matrix of second derivatives is formed
ITERATIONS = 2000  # of L-BFGS
PRECISION, ROUGH = 1e-12, 1e-7  # relative fall of the loss in a step, below which it ends
QUADRATIC = 1e-8  # such a fall of Newton's method, after which the next would be its square
STIFF = 1e-3  # penalties from here on outweigh what float32 rounds off the second derivatives
SINGLE = 1e-6  # down to such a fall, L-BFGS multiplies in float32, in half of the time


class Affine(NamedTuple):
    """Weights (c, c), or (c,) where they are a diagonal, and biases (c,)."""

    weight: Tensor
    bias: Tensor

    def apply(self, x: Logits) -> Logits:
        scaled = x * self.weight if self.weight.ndim == 1 else x @ self.weight.T
        return scaled + self.bias

    def to(self, dtype: torch.dtype) -> "Affine":
        return Affine(self.weight.to(dtype), self.bias.to(dtype))


@dataclass(frozen=True)
class Penalty:
    """Strengths of the squares of what departs from W = I and b = 0."""

    diagonal: float = FREE
    off_diagonal: float = FREE
    bias: float = FREE

    def spread(self, like: Affine) -> Affine:
        """The strength of each weight and bias."""
        weight = torch.full_like(like.weight, self.diagonal)
        if weight.ndim == 2:
            weight.fill_(self.off_diagonal).fill_diagonal_(self.diagonal)
        return Affine(weight, torch.full_like(like.bias, self.bias))


@dataclass(frozen=True)
class Rows:
    """Inputs, true classes, and classes that a row cannot have, if there are any."""

    x: Logits
    labels: Labels
    masked: Tensor | None = None

    def to_single(self) -> "Rows":
        return Rows(self.x.float(), self.labels, self.masked)

    def take(self, rows: Tensor) -> "Rows":
        masked = None if self.masked is None else self.masked[rows]
        return Rows(self.x[rows], self.labels[rows], masked)


def identity(class_count: int, *, is_diagonal: bool, device: torch.device) -> Affine:
    ones = torch.ones(class_count, dtype=torch.float64, device=device)
    return Affine(ones if is_diagonal else ones.diag(), torch.zeros_like(ones))


def fit_softmax_regression(
    rows: Rows, penalty: Penalty, start: Affine, precision: float = PRECISION
) -> Affine:
    """The minimum, which is the same from every start; a near one saves steps."""
    origin = identity(
        rows.x.shape[1], is_diagonal=start.weight.ndim == 1, device=start.weight.device
    )
    strength = _flatten(penalty.spread(origin))
    begin = _flatten(start) - _flatten(origin)
    solve = _solve_newton if len(begin) <= FEW else _solve_lbfgs
    return _add(origin, solve(rows, origin, strength, begin, precision))


def _solve_newton(
    rows: Rows, origin: Affine, strength: Tensor, moved: Tensor, precision: float
) -> Tensor:
    """Newton's method; what is returned has departed so far from the origin."""

    def evaluate(moved: Tensor) -> tuple[float, Tensor]:
        value, slope = _loss(rows, _add(origin, moved))
        return float(value + strength @ moved.square()), slope + 2 * strength * moved

    curved = rows.to_single() if float(strength.min()) >= STIFF else rows

    def solve_step(moved: Tensor, slope: Tensor) -> Tensor:
        curvature = _second_derivatives(curved, _add(origin, moved))
        curvature.diagonal().add_(2 * strength)
        return torch.linalg.solve(curvature, slope)

    return minimise(evaluate, solve_step, moved, max(precision, QUADRATIC))


def _solve_lbfgs(
    rows: Rows, origin: Affine, strength: Tensor, moved: Tensor, precision: float
) -> Tensor:
    # In these units the curvature at the start is 1 in every direction.
    unit = (_curvature(rows, _add(origin, moved)) + 2 * strength).rsqrt()

    used, lowest = rows.to_single(), math.inf

    def loss(point: Tensor) -> Tensor:
        nonlocal used, lowest
        moved = point * unit
        value, slope = _loss(used, _add(origin, moved))
        value = value + strength @ moved.square()
        slope = (slope + 2 * strength * moved) * unit
        answer = torch.cat([value[None], slope]).cpu()  # one copy: on a GPU each waits
        current = float(answer[0])
        if 0 <= lowest - current < SINGLE * abs(current):
            used = rows
        lowest = min(lowest, current)
        return answer

    def descend(start: Tensor) -> Minimum:
        return lbfgs.minimise(
            loss, start, tol=precision, gradient_tol=1e-10, max_iterations=ITERATIONS, history=8
        )

    found = descend(moved / unit)
    if used is not rows:  # float32 ended it
        used = rows
        found = descend(found.x)
    if not found.is_converged:
        warnings.warn(
            f"softmax regression ended after {found.iterations:,} steps, before it converged: so "
            "weak a penalty leaves it almost free; pass a larger strength, or more samples",
            UserWarning,
            stacklevel=6,
        )
    return found.x * unit


def compute_cross_entropy(rows: Rows, affine: Affine) -> float:
    return float(_loss(rows, affine)[0])


def _loss(rows: Rows, affine: Affine) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy, and its slope in weights and biases; the work is in the rows' type."""
    value = affine.bias.new_zeros(())
    weight, bias = torch.zeros_like(affine.weight), torch.zeros_like(affine.bias)
    affine = affine.to(rows.x.dtype)
    for part in iterate_chunks(rows.x):
        x, scores = rows.x[part], affine.apply(rows.x[part])
        if rows.masked is not None:
            scores.masked_fill_(rows.masked[part], -torch.inf)
        scores -= scores.amax(-1, keepdim=True)
        true = rows.labels[part, None]
        value -= scores.gather(-1, true).sum(dtype=value.dtype)
        residual = scores.exp_()
        total = residual.sum(-1, keepdim=True)
        value += total.log().sum(dtype=value.dtype)
        residual /= total
        residual.scatter_add_(-1, true, -torch.ones_like(true, dtype=residual.dtype))
        weight += (residual * x).sum(0) if weight.ndim == 1 else residual.T @ x
        bias += residual.sum(0)
    return value / len(rows.x), _flatten(Affine(weight, bias)) / len(rows.x)


def _curvature(rows: Rows, affine: Affine) -> Tensor:
    """The diagonal of the second derivatives."""
    weight, bias = torch.zeros_like(affine.weight), torch.zeros_like(affine.bias)
    for part in iterate_chunks(rows.x):
        x, p = rows.x[part], affine.apply(rows.x[part]).softmax(-1)
        p = p * (1 - p)
        weight += (p * x.square()).sum(0) if weight.ndim == 1 else p.T @ x.square()
        bias += p.sum(0)
    flat = _flatten(Affine(weight, bias)) / len(rows.x)
    # A direction that is flat here need not be so elsewhere.
    return flat.clamp_min(1e-6 * float(flat.max()))


def _second_derivatives(rows: Rows, affine: Affine) -> Tensor:
    """The matrix of them: the mean of Σ_j p_j g_j g_j' - (Σ_j p_j g_j)(Σ_j p_j g_j)'.

    g_j is what score j changes by with each parameter: x or a part of it, and 1.
    """
    c, size = len(affine.bias), affine.weight.numel() + len(affine.bias)
    total = affine.bias.new_zeros(size, size)
    affine = affine.to(rows.x.dtype)
    for part in iterate_chunks(rows.x):
        x, scores = rows.x[part], affine.apply(rows.x[part])
        if rows.masked is not None:
            scores.masked_fill_(rows.masked[part], -torch.inf)
        p = scores.softmax(-1)
        if affine.weight.ndim == 1:
            px = p * x
            across = px.sum(0).diag() - px.T @ p
            total[:c, :c] += (px * x).sum(0).diag() - px.T @ px
            total[:c, c:] += across
            total[c:, :c] += across.T
            total[c:, c:] += p.sum(0).diag() - p.T @ p
            continue
        mean = torch.cat([(p[:, :, None] * x[:, None, :]).flatten(1), p], 1)
        blocks = torch.einsum("nj,nk,nl->jkl", p, x, x)
        sides = p.T @ x
        for j in range(c):
            own = slice(j * c, (j + 1) * c)
            total[own, own] += blocks[j]
            total[own, c * c + j] += sides[j]
            total[c * c + j, own] += sides[j]
        total.diagonal()[c * c :].add_(p.sum(0))
        total -= mean.T @ mean
    return total / len(rows.x)


def _flatten(affine: Affine) -> Tensor:
    return torch.cat([affine.weight.flatten(), affine.bias])


def _add(origin: Affine, moved: Tensor) -> Affine:
    count = origin.weight.numel()
    weight = origin.weight + moved[:count].view_as(origin.weight)
    return Affine(weight, origin.bias + moved[count:])
