"""A stream of changing shifts: accuracy, mean confidence before and after adapting."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from rightly.calibrators import Calibrator
from rightly.evaluation.data_sets import LabelledSet
from rightly.reporting.figures.style import (
    BLACK,
    BLUE,
    DASHES,
    GREY,
    PAGE,
    VERMILION,
    make_axes,
    use_style,
)


class Window(NamedTuple):
    """Shares over some rows of a stream."""

    shift: str
    accuracy: float
    before: float
    after: float


def measure_stream(
    fitted: Calibrator,
    sets: Mapping[str, LabelledSet],
    names: Sequence[str],
    window: int,
) -> list[Window]:
    """Full windows of the sets, in the order of the stream."""
    windows = []
    for place, name in enumerate(names):
        predictions, labels = sets[name]
        part, parts = names[:place].count(name), names.count(name)
        rows = torch.arange(len(labels)).tensor_split(parts)[part]
        for chosen in rows.split(window):
            if len(chosen) == window:
                seen = fitted.select_views(predictions[chosen])
                right = (fitted.classes(seen) == labels[chosen]).double().mean()
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message="the shift estimate of this batch")
                    adapted = fitted.adapt(seen)
                means = (float(one.confidence(seen).mean()) for one in (fitted, adapted))
                windows.append(Window(name, float(right), *means))
    return windows


def draw_stream(windows: Sequence[Window], size: int) -> Any:
    """Three lines over the stream, and the shift schedule above them."""
    with use_style():
        ax = make_axes(None, PAGE, 2.8)
        rows = [size * (i + 1) for i in range(len(windows))]
        lines = {
            "accuracy": ("accuracy", BLACK, DASHES[0], "o"),
            "before": ("mean confidence, each sample alone", VERMILION, DASHES[1], ""),
            "after": ("mean confidence, adapted to each window", BLUE, DASHES[0], ""),
        }
        for field, (label, colour, dash, marker) in lines.items():
            shares = [100 * getattr(one, field) for one in windows]
            ax.plot(rows, shares, color=colour, linestyle=dash, marker=marker, label=label)
        start = 0
        for i, one in enumerate(windows):
            if i + 1 == len(windows) or windows[i + 1].shift != one.shift:
                if i + 1 < len(windows):
                    ax.axvline(rows[i] + size / 2, color=GREY, linewidth=0.7)
                middle = (rows[start] + rows[i]) / 2
                above = ax.get_xaxis_transform()
                ax.text(middle, 1.02, one.shift, transform=above, ha="center")
                start = i + 1
        ax.set_xlabel(f"predictions so far, in windows of {size}")
        ax.set_ylabel("%")
        ax.figure.legend(loc="outside lower center", ncols=3)
        return ax
