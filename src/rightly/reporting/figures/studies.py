"""What a calibrator does, what a loss asks for, and what views are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import BoundaryNorm

from rightly.metrics.curves import TemperatureBand
from rightly.reporting.figures.style import BLUE, GREY, SKY, VERMILION, axes, looks, styled

Matrix = Float[np.ndarray, "rows temperatures"]


def temperature_curves(
    data: Mapping[str, TemperatureBand], ax: Any | None = None, title: str = ""
) -> Any:
    """Median temperature against raw confidence; the band holds the middle four fifths."""
    with styled():
        ax = axes(ax)
        ax.axhline(1, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        for (name, band), look in zip(data.items(), looks(), strict=False):
            ax.fill_between(
                band.confidence, band.low, band.high, color=look["color"], alpha=0.18, linewidth=0
            )
            ax.plot(band.confidence, band.median, label=name, markevery=3, **look)
        ax.set(xlabel="raw confidence", ylabel="temperature", title=title, ylim=(0, None))
        ax.legend(loc="best")
    return ax


def loss_surface(
    title: str,
    temperature: Float[np.ndarray, " temperatures"],
    true_probability: Float[np.ndarray, " rows"],
    loss: Matrix,
    slope: Matrix,
    ax: Any | None = None,
) -> Any:
    """A loss over temperature and probability of the true class; arrows show where it falls."""
    with styled():
        ax = axes(ax, height=2.6)
        # Levels by rank, because losses have a few very large values that would flatten the rest.
        levels = np.unique(np.quantile(loss, np.linspace(0, 1, 15)).round(3))
        norm = BoundaryNorm(levels, 256)
        filled = ax.contourf(
            temperature, true_probability, loss, levels, norm=norm, cmap="cividis", extend="both"
        )
        for edge in ax.collections:
            edge.set_edgecolor("face")  # hides the hairlines that PDF viewers draw between levels
        bar = ax.figure.colorbar(filled, ax=ax, pad=0.02, aspect=30, ticks=levels[::4])
        bar.ax.set_yticklabels([f"{level:.2g}" for level in levels[::4]])
        ax.contour(temperature, true_probability, slope, [0.0], colors=VERMILION, linewidths=1.8)
        rows = np.linspace(0, len(true_probability) - 1, 7).astype(int)[1:-1]
        columns = np.linspace(0, len(temperature) - 1, 9).astype(int)[1:-1]
        x, y = np.meshgrid(temperature[columns], true_probability[rows])
        down = -np.sign(slope[np.ix_(rows, columns)])
        for sign, marker in ((1, ">"), (-1, "<")):
            at = down == sign
            ax.plot(
                x[at], y[at], marker, color="white", markeredgecolor="black", markeredgewidth=0.5
            )
        ax.axvline(1, color="white", linewidth=0.8, linestyle=(0, (2, 2)))
        _log_temperature(ax)
        ax.set(ylabel="probability of the true class", title=title)
    return ax


def loss_curves(
    title: str,
    temperature: Float[np.ndarray, " temperatures"],
    true_probability: Float[np.ndarray, " rows"],
    loss: Matrix,
    ax: Any | None = None,
) -> Any:
    """A loss against temperature for some samples; a marker shows each one's least value."""
    with styled():
        ax = axes(ax, height=2.4)
        ax.axvline(1, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        for p, row, look in zip(true_probability, loss, looks(), strict=False):
            least = int(row.argmin())
            # At the end of the range the loss still falls: that is no minimum to mark.
            inside = [least] if 0 < least < len(row) - 1 else []
            ax.plot(temperature, row, label=f"{p:.2f}", markevery=inside, **look)
        _log_temperature(ax)
        ax.set(ylabel="loss", title=title)
        ax.legend(loc="best", title="true class has", title_fontsize=8)
    return ax


def _log_temperature(ax: Any) -> None:
    ax.set_xscale("log")
    ticks = [0.25, 0.5, 1, 2, 4]
    ax.set_xticks(ticks, ["¼", "½", "1", "2", "4"])
    ax.minorticks_off()
    ax.set_xlabel("temperature")


@dataclass(frozen=True, eq=False)
class Bars:
    """Values with intervals, a bar each."""

    names: Sequence[str]
    value: Float[np.ndarray, " bars"]
    low: Float[np.ndarray, " bars"]
    high: Float[np.ndarray, " bars"]


def view_bars(data: Bars, ax: Any | None = None, title: str = "", label: str = "") -> Any:
    """One bar for each choice of views, with intervals, from 0: no change."""
    with styled():
        ax = axes(ax, height=0.6 + 0.22 * len(data.names))
        at = np.arange(len(data.names))[::-1]
        ax.barh(at, data.value, 0.68, color=SKY)
        spread = np.maximum([data.value - data.low, data.high - data.value], 0)
        ax.errorbar(
            data.value, at, xerr=spread, fmt="none", color="black", elinewidth=0.9, capsize=2
        )
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(at, data.names)
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel=label, title=title)
    return ax


def budget_curve(
    cost: Float[np.ndarray, " points"],
    value: Float[np.ndarray, " points"],
    low: Float[np.ndarray, " points"],
    high: Float[np.ndarray, " points"],
    ax: Any | None = None,
    title: str = "",
    label: str = "",
) -> Any:
    """A metric against what it costs, in forward passes a sample; the line is the cheapest."""
    with styled():
        ax = axes(ax, height=2.2)
        spread = np.maximum([value - low, high - value], 0)
        ax.errorbar(cost, value, yerr=spread, color=BLUE, marker="o", elinewidth=0.9, capsize=2)
        ax.axhline(value[0], color=VERMILION, linewidth=0.8, linestyle=(0, (2, 2)))
        ax.set(xlabel="forward passes a sample", ylabel=label, title=title)
    return ax
