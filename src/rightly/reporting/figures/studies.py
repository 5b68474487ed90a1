"""What a calibrator does, and what views are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from rightly.metrics.curves import TemperatureBand
from rightly.reporting.figures.style import (
    BLUE,
    GREY,
    SKY,
    VERMILION,
    line_styles,
    make_axes,
    use_style,
)


def draw_temperature(
    data: Mapping[str, TemperatureBand], ax: Any | None = None, title: str = ""
) -> Any:
    """Median temperature against raw confidence; the band holds the middle four fifths."""
    with use_style():
        ax = make_axes(ax)
        ax.axhline(1, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)), label="as it is")
        for (name, band), style in zip(data.items(), line_styles(), strict=False):
            ax.fill_between(
                band.confidence, band.low, band.high, color=style["color"], alpha=0.18, linewidth=0
            )
            ax.plot(band.confidence, band.median, label=name, markevery=3, **style)
        ax.set(xlabel="raw confidence", ylabel="temperature", title=title, ylim=(0, None))
    return ax


@dataclass(frozen=True, eq=False)
class Bars:
    """Values with intervals, a bar each."""

    names: Sequence[str]
    value: Float[np.ndarray, " bars"]
    low: Float[np.ndarray, " bars"]
    high: Float[np.ndarray, " bars"]


def draw_bars(data: Bars, ax: Any | None = None, title: str = "", label: str = "") -> Any:
    """One bar for each choice of views, with intervals, from 0: no change."""
    with use_style():
        ax = make_axes(ax, height=0.6 + 0.22 * len(data.names))
        at = np.arange(len(data.names))[::-1]
        ax.barh(at, data.value, 0.68, color=SKY)
        spread = np.maximum([data.value - data.low, data.high - data.value], 0)
        if spread.any():
            bar = {"fmt": "none", "color": "black", "elinewidth": 0.9, "capsize": 2}
            ax.errorbar(data.value, at, xerr=spread, label="95 % interval", **bar)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(at, data.names)
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel=label, title=title)
    return ax


def draw_cost_curve(
    cost: Float[np.ndarray, " points"],
    value: Float[np.ndarray, " points"],
    low: Float[np.ndarray, " points"],
    high: Float[np.ndarray, " points"],
    ax: Any | None = None,
    title: str = "",
    label: str = "",
) -> Any:
    """A metric against what it costs, in forward passes a sample; the line is the cheapest."""
    with use_style():
        ax = make_axes(ax, height=2.2)
        spread = np.maximum([value - low, high - value], 0)
        bar = {"marker": "o", "elinewidth": 0.9, "capsize": 2}
        label_of_line = "value, 95 % interval of its change" if spread.any() else "value"
        ax.errorbar(cost, value, yerr=spread, color=BLUE, label=label_of_line, **bar)
        base = {"color": VERMILION, "linewidth": 0.8, "linestyle": (0, (2, 2))}
        ax.axhline(value[0], label=f"with {cost[0]:g} pass" if cost[0] == 1 else "first", **base)
        ax.set(xlabel="forward passes a sample", ylabel=label, title=title)
    return ax
