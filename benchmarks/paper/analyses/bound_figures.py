"""The figure of the bounds: a confidence's range, a sample's loss, and a set's mean loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.paper.analyses.analysis import Row
from benchmarks.paper.analyses.confidence_limits import loss_limits, scale_limits
from benchmarks.paper.analyses.drawing import SMALL, finish_axes
from rightly.reporting.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION

LOOKS: dict[str, dict[str, Any]] = {
    "right": {"color": GREEN, "marker": "o", "linestyle": "-"},
    "narrowly wrong": {"color": ORANGE, "marker": "^", "linestyle": (0, (5, 1.5))},
    "absolutely wrong": {"color": VERMILION, "marker": "s", "linestyle": (0, (1.2, 1.2))},
}


def draw_tube(ax: Any, rows: Sequence[Row], class_count: int) -> None:
    """Confidence after scaling against that before: limits, and the samples nearest to them."""
    before = np.linspace(1 / class_count, 1, 200)
    for temperature, colour, marker in ((0.5, VERMILION, "v"), (2.0, BLUE, "o")):
        limits = scale_limits((1 - before) / before, temperature, class_count)
        ax.fill_between(before, *limits, color=colour, alpha=0.2, linewidth=0)
        found = [row for row in rows if row["T"] == temperature]
        ax.plot(
            [row["confidence before"] for row in found],
            [row["after"] for row in found],
            marker,
            color=colour,
            markersize=2.5,
            label=f"T = {temperature:g}",
        )
    finish_axes(ax, "confidence at T = 1", "confidence at T")
    ax.set_title("a sample, by its confidence", fontsize=SMALL)


def draw_limits(ax: Any, rows: Sequence[Row]) -> None:
    """Loss over temperature by kind: the mean of the samples, their range, and the bounds."""
    for i, (kind, look) in enumerate(LOOKS.items()):
        of = [row for row in rows if row["kind"] == kind and row["samples"]]
        across = [row["T"] * 1.07 ** (i - 1) for row in of]  # beside one another
        mean = np.array([row["mean loss"] for row in of])
        ends = np.array([[row["least loss"], row["greatest loss"]] for row in of]).reshape(-1, 2)
        ranges = np.abs(ends.T - mean)
        ax.errorbar(across, mean, ranges, label=kind, markersize=3, elinewidth=0.8, **look)
        if kind == "narrowly wrong":
            highest = [row["upper bound"] for row in of]
            label = "upper bound of narrowly wrong"
            ax.plot(across, highest, color=BLACK, linewidth=0.9, label=label)
    finish_axes(ax, "temperature", "CA loss", legend=False)
    ax.set_ylim(-0.05, 1.62)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.legend(fontsize=SMALL, loc="upper right")
    ticks = list(dict.fromkeys(row["T"] for row in rows))
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_title("kinds of samples, mean and range", fontsize=SMALL)


def draw_range(ax: Any, rows: Sequence[Row]) -> None:
    """Mean loss of each set over its accuracy, between the bounds."""
    share = np.linspace(0, 1, 2)
    limits = np.array([loss_limits(one, rows[0]["classes"]) for one in share])
    ax.fill_between(share, *limits.T, color=GREY, alpha=0.2, linewidth=0)
    ax.plot(share, 1 - share, color=BLACK, linewidth=0.9, linestyle=(0, (2, 2)), label="T near 0")
    for name, marker, colour in (("loss", "o", BLUE), ("loss then", "^", ORANGE)):
        label = {"loss": "T = 1", "loss then": "best single T"}[name]
        across, up = [row["accuracy"] for row in rows], [row[name] for row in rows]
        ax.plot(across, up, marker, color=colour, markersize=2.5, linestyle="", label=label)
    finish_axes(ax, "accuracy", "mean CA loss", legend=False)
    ax.legend(fontsize=SMALL, loc="upper right")
    ax.set_title("sets, by their accuracy", fontsize=SMALL)
