"""CE, MSE and CA of one wrong sample, logits [a, 2, 0.1, 0.05] with the truth at a < 2.

A loss pulls temperature up where its slope is negative: only CA does so for every wrong sample.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from analyses.described import Analysis, Context, Table
from analyses.drawing import finished
from rightly.losses import LOSSES

NAMES = {"cross_entropy": "CE", "squared_error": "MSE", "correctness_aware": "CA"}
SAMPLES = (1.9, 1.7, 1.5, 0.5)
HIGHEST = 100.0  # a minimum at the end of the range is no minimum: the loss falls for ever
COLOURS = ("#E69F00", "#D55E00", "#0072B2", "#009E73")


def compute(context: Context | None = None) -> list[Table]:
    optima, slopes = [], []
    for a in SAMPLES:
        p = probabilities(a, 1.0)
        row = {"a": a, "p_true": p[0], "p_predicted": p[1], "p_true / p_predicted": p[0] / p[1]}
        for name, short in NAMES.items():
            best = optimum(a, name)
            row[f"best T, {short}"] = best
            row[f"confidence, {short}"] = probabilities(a, best)[1]
        optima.append(row)
        for temperature in (0.5, 1.0, 2.0, 4.0):
            values = {
                f"d{short}/dT": value_and_slope(a, temperature, name)[1]
                for name, short in NAMES.items()
            }
            slopes.append({"a": a, "T": temperature, **values})
    return [Table("optima", optima), Table("slopes", slopes)]


def logits_of(a: float) -> torch.Tensor:
    return torch.tensor([[a, 2.0, 0.1, 0.05]], dtype=torch.float64)


def probabilities(a: float, temperature: float) -> list[float]:
    if math.isinf(temperature):
        return [0.25] * 4
    return (logits_of(a) / temperature).softmax(-1)[0].tolist()


def value_and_slope(a: float, temperature: float, loss: str) -> tuple[float, float]:
    """The loss at a temperature and its derivative in the temperature."""
    t = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    value = LOSSES[loss](logits_of(a) / t, torch.tensor([0]))
    value.backward()
    return float(value.detach()), float(t.grad)


def optimum(a: float, loss: str) -> float:
    """The temperature that minimises a loss; infinity where it falls for ever."""
    found = minimize_scalar(
        lambda log_t: value_and_slope(a, math.exp(log_t), loss)[0],
        bounds=(math.log(0.01), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return math.inf if found.x > math.log(HIGHEST) - 1e-3 else math.exp(found.x)


def surface(loss: str, steps: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Temperatures, probabilities of the truth at T = 1, losses and slopes in temperature."""
    temperatures = torch.linspace(0.25, 4, steps, dtype=torch.float64)
    a = torch.linspace(-1, 1.98, steps, dtype=torch.float64)
    logits = torch.stack([a, *(torch.full_like(a, v) for v in (2.0, 0.1, 0.05))], -1)
    t = temperatures[:, None].expand(steps, steps).clone().requires_grad_(True)
    scaled = (logits[None] / t[..., None]).reshape(-1, 1, 4)
    values = torch.stack([LOSSES[loss](one, torch.tensor([0])) for one in scaled])
    values.sum().backward()
    own = logits.softmax(-1)[:, 0]
    shape = (steps, steps)
    return (
        temperatures.numpy(),
        own.numpy(),
        values.detach().numpy().reshape(shape),
        t.grad.numpy().reshape(shape),
    )


def draw(tables: Sequence[Table], axes: Any) -> None:
    for ax, (name, short) in zip(axes[:3], NAMES.items(), strict=True):
        temperatures, truth, values, slopes = surface(name)
        ax.contourf(temperatures, truth, values.T, levels=14, cmap="cividis")
        ax.contour(temperatures, truth, slopes.T, levels=[0], colors="white", linewidths=1.5)
        every = slice(3, None, 6)
        x, y = np.meshgrid(temperatures[every], truth[every])
        down = -np.sign(slopes.T[every, every])
        ax.quiver(x, y, down, 0 * down, color="white", scale=24, width=0.006)
        ax.set_title(f"{short}: where descent moves T", fontsize=9)
        ax.set_xlabel("temperature")
        ax.set_ylabel("p_true at T = 1")
    grid = np.linspace(0.25, 4, 80)
    for ax, (name, short) in zip(axes[3:], NAMES.items(), strict=True):
        for a, colour in zip(SAMPLES, COLOURS, strict=True):
            both = [value_and_slope(a, t, name) for t in grid]
            ax.plot(grid, [value for value, _ in both], color=colour, label=f"a = {a}")
            best = optimum(a, name)
            if best < grid[-1]:
                ax.plot(best, value_and_slope(a, best, name)[0], "o", ms=4, color=colour)
        finished(ax, "temperature", short)


ANALYSIS = Analysis(
    "which losses raise the confidence of a wrong sample?",
    compute,
    draw,
    panels=6,
    needs_data=False,
)
