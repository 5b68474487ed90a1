"""Figures of one loss of a wrong sample over temperature: as a surface and as curves."""

from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm

from benchmarks.paper.analyses.landscape import Landscape
from rightly.reporting.figures.style import GREY, VERMILION, line_styles, make_axes, use_style


def draw_loss_surface(data: Landscape, ax: Any | None = None) -> Any:
    """A loss over temperature and probability of the true class; arrows show where it falls."""
    temperature, true_probability = data.temperature, data.true_probability
    loss, slope = data.loss, data.slope
    with use_style():
        ax = make_axes(ax, height=2.6)
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
        _scale_temperature(ax)
        ax.set(ylabel="probability of the true class", title=data.title)
    return ax


def draw_loss_curves(data: Landscape, ax: Any | None = None) -> Any:
    """A loss against temperature, a line a sample; a marker shows each one's least value."""
    with use_style():
        ax = make_axes(ax, height=2.4)
        ax.axvline(1, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        for p, row, look in zip(data.true_probability, data.loss, line_styles(), strict=False):
            least = int(row.argmin())
            # At the end of the range the loss still falls: that is no minimum to mark.
            inside = [least] if 0 < least < len(row) - 1 else []
            ax.plot(data.temperature, row, label=f"{p:.2f}", markevery=inside, **look)
        _scale_temperature(ax)
        ax.set(ylabel="loss", title=data.title)
        ax.legend(loc="best", title="true class has", title_fontsize=8)
    return ax


def _scale_temperature(ax: Any) -> None:
    ax.set_xscale("log")
    ticks = [0.25, 0.5, 1, 2, 4]
    ax.set_xticks(ticks, ["¼", "½", "1", "2", "4"])
    ax.minorticks_off()
    ax.set_xlabel("temperature")
