"""A stream in which the weather changes: accuracy, and mean confidence before and after adapting.

    python -m benchmarks.own.stream_figure docs/figures/adapting.svg
    python -m benchmarks.own.stream_figure OUT.svg --predictions FOLDER --stream ind,fog,ind,snow

Without `--predictions`, those of the demo. FOLDER/cal.npz is fitted on; the sets of the stream come
one after another, and one that comes twice is divided. The calibrator is adapted to each window
alone.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

import rightly
from rightly.demo_data import TESTS, load_demo_set
from rightly.evaluation.data_sets import LabelledSet, load_data_set
from rightly.reporting.figures.style import (
    BLACK,
    BLUE,
    DASHES,
    GREY,
    PAGE,
    VERMILION,
    make_axes,
    save,
    use_style,
)

STREAM = "ind,gaussian_blur,ind,gaussian_noise"


class Window(NamedTuple):
    """Shares over some rows of a stream."""

    weather: str
    accuracy: float
    before: float
    after: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--predictions", type=Path, help="a folder; by default the demo's")
    parser.add_argument("--stream", default=STREAM)
    parser.add_argument("--method", default="rightly")
    parser.add_argument("--window", type=int, default=250)
    options = parser.parse_args()
    names = options.stream.split(",")
    sets = {
        name: load_demo_set(name)
        if options.predictions is None
        else load_data_set(options.predictions / f"{name}.npz")
        for name in ("cal", *names)
    }
    fitted = rightly.calibrator(options.method).fit(*sets["cal"])
    windows = measure_stream(fitted, sets, names, options.window)
    save(draw_stream(windows, options.window), options.out)
    for name in dict.fromkeys(names):
        here = [window for window in windows if window.weather == name]
        before, after = (
            sum(abs(getattr(one, field) - one.accuracy) for one in here) / len(here)
            for field in ("before", "after")
        )
        gaps = f"{100 * before:.1f} before, {100 * after:.1f} after"
        print(f"{name}: mean |confidence - accuracy| {gaps}")


def measure_stream(
    fitted: rightly.Calibrator,
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
                    warnings.filterwarnings("ignore", message="the context of this batch")
                    adapted = fitted.adapt(seen)
                means = (float(one.confidence(seen).mean()) for one in (fitted, adapted))
                windows.append(Window(name, float(right), *means))
    return windows


def draw_stream(windows: Sequence[Window], size: int) -> object:
    """Three lines over the stream, and the weather above them."""
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
            if i + 1 == len(windows) or windows[i + 1].weather != one.weather:
                if i + 1 < len(windows):
                    ax.axvline(rows[i] + size / 2, color=GREY, linewidth=0.7)
                middle = (rows[start] + rows[i]) / 2
                title, above = TESTS.get(one.weather, one.weather), ax.get_xaxis_transform()
                ax.text(middle, 1.02, title, transform=above, ha="center")
                start = i + 1
        ax.set_xlabel(f"predictions so far, in windows of {size}")
        ax.set_ylabel("%")
        ax.figure.legend(loc="outside lower center", ncols=3)
        return ax


if __name__ == "__main__":
    main()
