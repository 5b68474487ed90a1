"""Figures over classifiers: a panel each, and methods by their mean ranks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rightly.metrics import Outcomes
from rightly.metrics.states import BINS
from rightly.reporting.figures.panels import (
    draw_reliability_panel,
    draw_risk_coverage_panel,
    draw_roc_panel,
)
from rightly.reporting.figures.style import BLUE, GREY, finish, make_axes, make_grid, use_style

# One classifier and one column of a grid: its methods' outcomes by name.
Panel = Mapping[str, Outcomes]

PANELS: dict[str, Callable[[Panel, Any], None]] = {
    "roc": draw_roc_panel,
    "risk-coverage": draw_risk_coverage_panel,
}


def draw_reliability_grid(panels: Mapping[tuple[str, str], Outcomes], title: str = "") -> Any:
    """One reliability diagram a classifier (rows) and method (columns)."""
    for ax, panel in _fill_grid(panels, title):
        draw_reliability_panel(panel, ax, bins=BINS)  # so that its ECE is the table's
    finish(ax.figure)
    return ax


def draw_curve_grid(kind: str, panels: Mapping[tuple[str, str], Panel]) -> Any:
    """ROC or risk-coverage curves, a panel each classifier (rows) and test set (columns)."""
    for ax, panel in _fill_grid(panels):
        PANELS[kind](panel, ax)
        handles, labels = ax.get_legend_handles_labels()
        ax.get_legend().remove()  # one for all panels instead
    with use_style():
        names = list(next(iter(panels.values())))
        assert len(names) == len(labels)
        ax.figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 4))
    finish(ax.figure)
    return ax


def _fill_grid(panels: Mapping[tuple[str, str], Any], title: str = "") -> Iterator[tuple[Any, Any]]:
    """Axes with what belongs on them; names of rows and columns stand at the edges only."""
    rows, columns = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    grid = make_grid(len(rows), len(columns))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            ax = grid[i, j]
            yield ax, panels[row, column]
            with use_style():
                ax.set_title("" if i else column)
                ax.set_ylabel("" if j else f"{row}\n{ax.get_ylabel()}")
                ax.set_xlabel(ax.get_xlabel() if i == len(rows) - 1 else "")
    if title:
        with use_style():
            ax.figure.suptitle(title, fontsize=9)


def find_groups(ranks: Sequence[float], distance: float) -> list[tuple[int, int]]:
    """First and last of each longest run of ascending ranks that lie within a distance."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i, rank in enumerate(ranks) if rank <= ranks[first] + distance)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def draw_critical_difference(
    ranks: Mapping[str, float], distance: float, ax: Any | None = None, title: str = ""
) -> Any:
    """Methods by mean rank, best on top; bars join those that cannot be told apart.

    After Demsar (2006), turned so that any number of names can be read.
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    value = np.array([ranks[name] for name in names])
    with use_style():
        ax = make_axes(ax, width=4.2, height=0.9 + 0.17 * len(names))
        at = np.arange(len(names))
        ax.hlines(at, 0, value, color=GREY, linewidth=0.5, linestyle=(0, (1, 2)))
        ax.plot(value, at, "o", color=BLUE, clip_on=False, zorder=3)
        over = -1.2
        ax.plot([1, 1 + distance], [over, over], "|-", color="black", linewidth=1.2, markersize=6)
        ax.text(1 + distance / 2, over - 0.25, f"CD {distance:.2f}", ha="center", fontsize=8)
        for k, (first, last) in enumerate(find_groups(value.tolist(), distance)):
            place = 1.03 + 0.03 * k
            ax.plot(
                [place, place],
                [first - 0.25, last + 0.25],
                color="black",
                linewidth=2.2,
                solid_capstyle="butt",
                transform=ax.get_yaxis_transform(),
                clip_on=False,
            )
        ax.set_yticks(at, names)
        ax.tick_params(axis="y", length=0)
        top = max(len(names), 1 + distance)
        ax.set(xlim=(0.5, top + 0.5), ylim=(len(names) - 0.4, over - 1.2))
        ax.set(xlabel="mean rank", title=title)
    return ax
