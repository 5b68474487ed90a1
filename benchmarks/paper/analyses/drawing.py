"""Lines and bars that several analyses draw into axes."""

from collections.abc import Mapping, Sequence
from typing import Any

# Okabe and Ito's palette, which colour-blind readers can tell apart; black is the classifier.
COLOURS = {
    "uncalibrated": "#000000",
    "temperature_scaling": "#E69F00",
    "ce_views": "#D55E00",
    "ca_views": "#0072B2",
    "ca_balanced_views": "#CC79A7",
    "balanced_temperature": "#009E73",
    "ca_views_released": "#56B4E9",
}
MARKS = "os^Dvx*P"


def lines(
    ax: Any, series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str
) -> Any:
    """One line a name, told apart by colour and by mark."""
    for i, (name, (across, up)) in enumerate(series.items()):
        ax.plot(across, up, marker=MARKS[i % len(MARKS)], ms=4, color=COLOURS.get(name), label=name)
    return finished(ax, x, y)


def bars(ax: Any, values: Mapping[str, float], x: str) -> Any:
    """Horizontal bars, the first on top, each with its value."""
    names = list(values)
    ax.barh(range(len(names)), list(values.values()), color="#0072B2")
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.invert_yaxis()
    for i, value in enumerate(values.values()):
        ax.annotate(f" {value:.3g}", (value, i), va="center", fontsize=7)
    ax.set_xlabel(x)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def finished(ax: Any, x: str, y: str, legend: bool = True) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(fontsize=7, frameon=False)
    return ax


def series_of(
    rows: Sequence[Mapping[str, Any]], name: str, x: str, y: str
) -> dict[str, tuple[list[float], list[float]]]:
    """Rows as one line for each value of a column."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        across, up = found.setdefault(row[name], ([], []))
        across.append(row[x])
        up.append(row[y])
    return found
