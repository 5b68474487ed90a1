"""CE, MSE and CA of one wrong sample, logits [a, 2, 0.1, 0.05] with the truth at a < 2.

    python -m benchmarks.paper.analyse loss_surface --out FOLDER

A loss pulls temperature up where its slope is negative: only CA does so for every wrong sample.
The figure has each loss as a surface (above) and as curves of single samples (below).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.paper.analyses.analysis import Analysis, Context, Table
from benchmarks.paper.analyses.landscape import (
    TITLES,
    compute_landscape,
    compute_probabilities,
    invert_probability,
)
from benchmarks.paper.analyses.loss_figures import draw_loss_curves, draw_loss_surface

NAMES = {"cross_entropy": "CE", "squared_error": "MSE", "correctness_aware": "CA"}
SAMPLES = (1.9, 1.7, 1.5, 0.5)
HIGHEST = 100.0  # a minimum at the end of the range is no minimum: the loss falls for ever


def compute(context: Context | None = None) -> list[Table]:
    optima, slopes = [], []
    for a in SAMPLES:
        p = compute_probabilities(a, 1.0)
        row = {"a": a, "p_true": p[0], "p_predicted": p[1], "p_true / p_predicted": p[0] / p[1]}
        for name, short in NAMES.items():
            best = find_optimum(a, name)
            row[f"best T, {short}"] = best
            row[f"confidence, {short}"] = compute_probabilities(a, best)[1]
        optima.append(row)
        temperatures = np.array([0.5, 1.0, 2.0, 4.0])
        of_loss = {
            f"d{short}/dT": compute_landscape(name, np.array([a]), temperatures).slope[0]
            for name, short in NAMES.items()
        }
        for i, temperature in enumerate(temperatures.tolist()):
            values = {column: float(slope[i]) for column, slope in of_loss.items()}
            slopes.append({"a": a, "T": temperature, **values})
    return [Table("optima", optima), Table("slopes", slopes)]


def find_optimum(a: float, loss: str) -> float:
    """The temperature that minimises a loss; infinity where it falls for ever."""

    def compute_loss(log_temperature: float) -> float:
        temperature = np.array([math.exp(log_temperature)])
        return float(compute_landscape(loss, np.array([a]), temperature).loss[0, 0])

    minimum = minimize_scalar(
        compute_loss,
        bounds=(math.log(0.01), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return math.inf if minimum.x > math.log(HIGHEST) - 1e-3 else math.exp(minimum.x)


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = invert_probability(np.linspace(0.02, 0.43, 36))
    for ax, name in zip(axes[:3], TITLES, strict=True):
        draw_loss_surface(compute_landscape(name, rows, np.geomspace(0.25, 5, 41)), ax)
    for ax, name in zip(axes[3:], TITLES, strict=True):
        draw_loss_curves(compute_landscape(name, np.array(SAMPLES), np.geomspace(0.25, 5, 81)), ax)
    for row in (axes[:3], axes[3:]):
        for ax in row[1:]:
            ax.set_ylabel("")
    for ax in axes[4:]:
        ax.get_legend().remove()


ANALYSIS = Analysis(
    "which losses raise the confidence of a wrong sample?",
    compute,
    draw,
    panels=6,
    height=2.3,
    needs_data=False,
)
