"""A handful of bounded numbers that minimise a differentiable loss, by L-BFGS in float64."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from rightly.calibrators.solvers.execution import deterministic


def minimise_bounded(
    loss: Callable[[Tensor], Tensor],
    start: Sequence[float],
    bounds: Sequence[tuple[float | None, float | None]],
    device: torch.device,
) -> tuple[Tensor, float]:
    """The numbers found, and the loss there; repeatable to the bit."""

    def value_and_slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        place = torch.from_numpy(point).to(device).requires_grad_()
        value = loss(place)
        (slope,) = torch.autograd.grad(value, place)
        return float(value.detach()), slope.cpu().numpy()

    with deterministic():
        found = minimize(
            value_and_slope,
            np.array(start, dtype=float),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-8},
        )
    return torch.from_numpy(found.x).to(device), float(found.fun)
