"""Lines and bars that several analyses draw into axes, in the style of Rightly's figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from rightly.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    MARKERS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)

# The same colour for a method in every figure; black is the classifier.
COLOURS = {
    "uncalibrated": BLACK,
    "temperature_scaling": ORANGE,
    "ce_views": VERMILION,
    "ca_views": BLUE,
    "ca_balanced_views": PURPLE,
    "balanced_temperature": GREEN,
    "ca_views_released": SKY,
}
SMALL = 6.5  # points, for what stands beside many bars or dots


def draw_lines(
    ax: Any,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x: str,
    y: str,
    legend: bool = True,
) -> Any:
    """One line a name, with a colour and a mark of its own."""
    for i, (name, (across, up)) in enumerate(series.items()):
        ax.plot(across, up, marker=MARKERS[i % len(MARKERS)], color=COLOURS.get(name), label=name)
    return finish_axes(ax, x, y, legend)


def draw_bars(ax: Any, values: Mapping[str, float], x: str) -> Any:
    """Horizontal bars, the first on top, each with its value."""
    names = list(values)
    ax.barh(range(len(names)), list(values.values()), color=BLUE)
    ax.set_yticks(range(len(names)), names, fontsize=SMALL)
    ax.invert_yaxis()
    for i, value in enumerate(values.values()):
        ax.annotate(f" {value:.3g}", (value, i), va="center", fontsize=SMALL)
    ax.set_xlabel(x)
    return ax


def finish_axes(ax: Any, x: str, y: str, legend: bool = True) -> Any:
    """Labels, a faint grid and, where lines have names, a legend."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25)
    if legend:
        ax.legend(fontsize=SMALL)
    return ax


def group_series(
    rows: Sequence[Mapping[str, Any]], name: str, x: str, y: str
) -> dict[str, tuple[list[float], list[float]]]:
    """Rows as one line for each value of a column."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        across, up = series.setdefault(row[name], ([], []))
        across.append(row[x])
        up.append(row[y])
    return series
