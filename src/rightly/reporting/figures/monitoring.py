"""What a log shows over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from rightly.reporting.figures.style import (
    BLACK,
    BLUE,
    GREY,
    PAGE,
    SKY,
    VERMILION,
    make_axes,
    use_style,
)


@dataclass(frozen=True, eq=False)
class AccuracyOverTime:
    """Windows of a log; nan where a value is not known."""

    row: Float[np.ndarray, " w"]  # the middle of each window
    confidence: Float[np.ndarray, " w"]
    expected: Float[np.ndarray, " w"]
    low: Float[np.ndarray, " w"]
    high: Float[np.ndarray, " w"]
    accuracy: Float[np.ndarray, " w"]
    alarms: Sequence[tuple[int, str]] = ()  # row and name


def draw_accuracy_over_time(data: AccuracyOverTime, ax: Any | None = None, title: str = "") -> Any:
    """Expected accuracy with its range, mean confidence, alarms, and accuracy where it is known."""
    with use_style():
        ax = make_axes(ax, width=PAGE)
        ax.fill_between(data.row, data.low, data.high, color=SKY, alpha=0.3, linewidth=0)
        ax.plot(data.row, data.expected, color=BLUE, marker="o", label="expected accuracy")
        ax.plot(
            data.row, data.confidence, color=GREY, linestyle=(0, (5, 1.5)), label="mean confidence"
        )
        if not np.isnan(data.accuracy).all():
            ax.plot(
                data.row, data.accuracy, color=BLACK, linestyle="", marker="D", label="accuracy"
            )
        for row, name in data.alarms:
            ax.axvline(row, color=VERMILION, linewidth=1.0, linestyle=(0, (1.2, 1.2)))
            ax.text(row, 0.02, name, color=VERMILION, ha="right", rotation=90, fontsize=8)
        ax.set(xlabel="row", ylabel="share of predictions", title=title, ylim=(0, 1))
        ax.legend(loc="lower right")
    return ax
