"""Figures of calibration: reliability diagrams, confidence histograms, the KS error."""

from typing import Any

import numpy as np

from rightly.metrics.curves import Histogram, KsCurve, Reliability, SmoothReliability
from rightly.reporting.figures.style import (
    BLUE,
    GREY,
    VERMILION,
    draw_diagonal,
    make_axes,
    use_style,
)
from rightly.reporting.formatting import format_percent

PERFECT = "perfectly calibrated"
COUNTS = 0.16  # share of the height of a reliability diagram that shows how many samples


def draw_reliability(
    data: Reliability, ax: Any | None = None, title: str = "", note: str = ""
) -> Any:
    """Accuracy against confidence in bins, with intervals, and below how many samples each has."""
    with use_style():
        ax = make_axes(ax, height=3.25)
        draw_diagonal(ax, PERFECT)
        held = data.count > 0
        x, y = data.confidence[held], data.accuracy[held]
        spread = np.maximum([y - data.low[held], data.high[held] - y], 0)
        ax.errorbar(
            x,
            y,
            yerr=spread,
            color=BLUE,
            marker="o",
            linewidth=1.2,
            elinewidth=0.9,
            capsize=1.5,
            clip_on=False,
            label="accuracy in a bin, 95 % interval",
        )
        _explain_grey(ax, "samples in a bin")
        _unit_square(ax, title, note)
        _counts(ax, data.edges[:-1], np.diff(data.edges), data.count)
    return ax


def draw_smooth_reliability(
    data: SmoothReliability, ax: Any | None = None, title: str = "", note: str = ""
) -> Any:
    """Accuracy as a smooth function of confidence, with a band, and below where samples lie."""
    with use_style():
        ax = make_axes(ax, height=3.25)
        draw_diagonal(ax, PERFECT)
        band = {"color": BLUE, "alpha": 0.22, "linewidth": 0, "label": "95 % band"}
        ax.fill_between(data.confidence, data.low, data.high, **band)
        ax.plot(data.confidence, data.accuracy, color=BLUE, label="accuracy, smoothed")
        _explain_grey(ax, "where samples lie")
        _unit_square(ax, title, note)
        below = ax.inset_axes([0, 0, 1, COUNTS], sharex=ax)
        below.fill_between(data.confidence, 0, data.density, color=GREY, alpha=0.45, linewidth=0)
        _bare(below, float(data.density.max()) if len(data.density) else 1.0)
    return ax


def _explain_grey(ax: Any, label: str) -> None:
    """An entry of the legend for what stands in axes of its own."""
    ax.plot([], [], color=GREY, alpha=0.45, marker="s", linestyle="", label=label)


def _counts(ax: Any, left: np.ndarray, width: np.ndarray, count: np.ndarray) -> None:
    below = ax.inset_axes([0, 0, 1, COUNTS], sharex=ax)
    below.bar(left, count, width * 0.92, align="edge", color=GREY, alpha=0.45)
    _bare(below, float(max(1, count.max())))
    most = int(count.argmax())
    place, side = (
        (left[most] + width[most], "right") if most > len(count) / 2 else (left[most], "left")
    )
    # The one bar that gives the others their scale.
    below.annotate(
        f"{count[most]}", (place, count[most]), ha=side, va="bottom", fontsize=8, color=GREY
    )


def _bare(ax: Any, top: float) -> None:
    ax.set(ylim=(0, 1.05 * top), yticks=[])
    ax.axis("off")


def _unit_square(ax: Any, title: str, note: str) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title)
    ax.set(xlabel="confidence", ylabel="accuracy")
    ticks = [0, 0.25, 0.5, 0.75, 1]
    ax.set_xticks(ticks, ["0", "0.25", "0.5", "0.75", "1"])
    ax.set_yticks(ticks, ["0", "0.25", "0.5", "0.75", "1"])
    if note:
        # Sparse bins may stand behind it.
        behind = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1}
        ax.text(0.04, 0.96, note, transform=ax.transAxes, va="top", fontsize=8, bbox=behind)


def draw_histogram(data: Histogram, ax: Any | None = None, title: str = "") -> Any:
    """How sure the classifier is when right, and, downwards, when wrong, in % of each."""
    with use_style():
        ax = make_axes(ax, height=2.4)
        width = np.diff(data.edges)
        right, wrong = int(data.right.sum()), int(data.wrong.sum())
        up, down = 100 * data.right / max(1, right), -100 * data.wrong / max(1, wrong)
        bar = {"align": "edge", "linewidth": 0.5, "edgecolor": "white"}
        ax.bar(data.edges[:-1], up, width, color=BLUE, label=f"{right} right", **bar)
        ax.bar(
            data.edges[:-1],
            down,
            width,
            color=VERMILION,
            hatch="////",
            label=f"{wrong} wrong",
            **bar,
        )
        ax.axhline(0, color="black", linewidth=0.7)
        ax.set(xlim=(0, 1), xlabel="confidence", ylabel="% of right, of wrong", title=title)
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(loc="upper left")
    return ax


def draw_ks(data: KsCurve, ax: Any | None = None, title: str = "") -> Any:
    """Cumulative confidence and accuracy; their largest distance is the KS error."""
    with use_style():
        ax = make_axes(ax)
        ax.plot(
            data.share,
            data.confidence,
            color=VERMILION,
            linestyle=(0, (5, 1.5)),
            label="cumulative confidence",
        )
        ax.plot(data.share, data.accuracy, color=BLUE, label="cumulative accuracy")
        ends = [np.interp(data.at, data.share, y) for y in (data.confidence, data.accuracy)]
        bar = {"color": "black", "linewidth": 1.6, "solid_capstyle": "butt"}
        ax.plot([data.at, data.at], ends, label="KS, their largest distance", **bar)
        note = f"KS {format_percent(data.ks)} %"
        ax.text(0.97, 0.05, note, transform=ax.transAxes, ha="right", fontsize=8)
        ax.set(xlim=(0, 1), xlabel="least confident share")
        ax.set(ylim=(0, None), ylabel="cumulative mean", title=title)
    return ax
