"""The style of figures: sizes for a column of print, colours for every eye, text kept as text."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from rightly.atomic_write import write_atomically
from rightly.optional import require

matplotlib = require("matplotlib", "plots")
Figure = require("matplotlib.figure", "plots").Figure

# Okabe & Ito (2008), without the yellow that vanishes on white.
BLACK, BLUE, VERMILION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY, GREY = "#CC79A7", "#E69F00", "#56B4E9", "#767676"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
MARKERS = "osD^vPX"
COLUMN, PAGE = 3.25, 6.75  # inches: one column, and two with the gap between

FORMATS = (".pdf", ".svg", ".png")
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "figure.dpi": 200,
    # Text that can be searched, and edited for a paper.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "rightly",  # the same figure is the same file
}


@contextmanager
def use_style() -> Iterator[None]:
    """Draws in this style and leaves that of the caller as it was."""
    with matplotlib.rc_context(STYLE):
        yield


def make_axes(ax: Any | None, width: float = COLUMN, height: float = 2.6) -> Any:
    """The axes given, or new ones in a figure of their own."""
    if ax is not None:
        return ax
    return Figure(figsize=(width, height), layout="constrained").subplots()


def make_grid(rows: int, columns: int, height: float | None = None) -> Any:
    """Axes in rows and columns of one figure: one or two fill columns of print, three a page."""
    with use_style():
        each = COLUMN if columns < 3 else PAGE / 3
        figure = Figure(figsize=(each * columns, (height or each) * rows), layout="constrained")
        return figure.subplots(rows, columns, squeeze=False)


def line_styles() -> Iterator[dict[str, Any]]:
    """Colour, dashes and marker of one line after another."""
    for colour, dash, marker in zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False):
        yield {"color": colour, "linestyle": dash, "marker": marker}


def draw_diagonal(ax: Any) -> None:
    """Where confidence equals accuracy."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)


def save(ax: Any, path: Path) -> None:
    """Writes the figure of some axes as .pdf, .svg or .png, by the ending of the path."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"path must end in {', '.join(FORMATS)}, got {path.name!r}")
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}[kind]
    with use_style():
        write_atomically(
            path,
            lambda part: ax.figure.savefig(part, format=kind[1:], metadata=undated, dpi=200),
        )
