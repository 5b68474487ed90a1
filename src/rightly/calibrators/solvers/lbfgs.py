"""Minimise a differentiable loss of many or bounded parameters by L-BFGS.

SciPy's, because torch's takes a second to import.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

Bounds = Sequence[tuple[float | None, float | None]]

LINE_SEARCH = 20  # evaluations per iteration that SciPy's line search may take
LIMIT_REACHED = 1  # SciPy's status


class Minimum(NamedTuple):
    """Where L-BFGS ended, the loss there, and how it got there."""

    x: Tensor
    value: float
    iterations: int
    is_converged: bool


def minimise(
    loss: Callable[[Tensor], Tensor],
    start: Tensor,
    bounds: Bounds | None = None,
    monitor: Callable[[Tensor], bool] | None = None,
    *,
    tol: float = 1e-13,
    gradient_tol: float = 1e-8,
    max_iterations: int = 500,
    history: int = 10,
) -> Minimum:
    """Minimise a loss from a start, within bounds per parameter.

    `loss(x)` returns the value followed by the gradient, in one tensor (see `differentiate`): on a
    GPU every copy to the processor waits. `monitor(x)` is called after each iteration and ends the
    search by returning True. The search converges when an iteration lowers the loss by less than
    `tol` of it, or when no component of the projected gradient exceeds `gradient_tol`.
    """

    def place(point: np.ndarray) -> Tensor:
        return torch.from_numpy(point).to(start.device)

    def evaluate(point: np.ndarray) -> tuple[float, np.ndarray]:
        value_and_gradient = loss(place(point)).cpu().numpy()
        return float(value_and_gradient[0]), value_and_gradient[1:]

    def check(point: np.ndarray) -> None:
        if monitor is not None and monitor(place(point.copy())):
            raise StopIteration

    found = minimize(
        evaluate,
        start.detach().double().cpu().numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=None if monitor is None else check,
        options={
            "maxiter": max_iterations,
            "maxfun": LINE_SEARCH * max_iterations,
            "maxcor": history,
            "ftol": tol,
            "gtol": gradient_tol,
        },
    )
    return Minimum(place(found.x), float(found.fun), found.nit, found.status != LIMIT_REACHED)


def differentiate(loss: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function that gives the loss followed by its gradient, by autograd."""

    def value_and_gradient(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            value = loss(x)
        (gradient,) = torch.autograd.grad(value, x)
        return torch.cat([value.detach()[None], gradient])

    return value_and_gradient
