"""The style of figures: sizes for a column of print, colours for every eye, text kept as text."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from textwrap import wrap
from typing import Any

from rightly.files import write_atomically
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
TITLE_INCH, LEGEND_INCH = 9, 16  # letters to an inch
LINE = 0.2  # inches, of a title or a legend

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


def make_grid(
    rows: int, columns: int, height: float | None = None, width: float | None = None
) -> Any:
    """Axes in rows and columns of one figure: one or two fill columns of print, three a page."""
    with use_style():
        each = width or (COLUMN if columns < 3 else PAGE / 3)
        figure = Figure(figsize=(each * columns, (height or each) * rows), layout="constrained")
        return figure.subplots(rows, columns, squeeze=False)


def make_panels(count: int, most: int, height: float | None = None) -> tuple[list[Any], int]:
    """So many axes in rows of at most `most`, and how many make a row."""
    columns = min(count, most)
    grid = make_grid(-(-count // columns), columns, height)
    for ax in grid.flat[count:]:
        ax.axis("off")
    return list(grid.flat[:count]), columns


def strip_inner_labels(axes: Sequence[Any], columns: int) -> None:
    """Leaves labels of values to the first of each row, and of the x-axis to the lowest."""
    for i, ax in enumerate(axes):
        if i % columns:
            ax.set_ylabel("")
        if i + columns < len(axes):
            ax.set_xlabel("")


def finish(figure: Any) -> None:
    """Wraps titles to their panels and explains below, once, what no panel explains itself.

    The figure grows by the room that takes, so that panels keep their size.
    """
    with use_style():
        lines = _wrap_titles(figure) + _add_legend(figure)
        figure.set_figheight(figure.get_figheight() + LINE * lines)


def _wrap_titles(figure: Any) -> int:
    """How many lines that takes beyond one a row of panels."""
    tallest: dict[int, int] = {}
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is not None and ax.get_title():
            letters = int(TITLE_INCH * figure.get_figwidth() / place.get_gridspec().ncols)
            parts = [part for line in ax.get_title().split("\n") for part in wrap(line, letters)]
            ax.set_title("\n".join(parts))
            row = place.rowspan.start
            tallest[row] = max(tallest.get(row, 1), len(parts))
    return sum(tallest.values()) - len(tallest)


def _add_legend(figure: Any) -> int:
    """How many lines it has."""
    entries: dict[str, Any] = {}
    for ax in figure.axes:
        if ax.get_legend() is None:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
    if not entries or figure.legends:
        return 0
    widest = 0.6 + max(map(len, entries)) / LEGEND_INCH
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    placed = {"loc": "outside lower center", "ncols": columns}
    figure.legend(list(entries.values()), list(entries), **placed)
    return -(-len(entries) // columns)


def line_styles() -> Iterator[dict[str, Any]]:
    """Colour, dashes and marker of one line after another."""
    for colour, dash, marker in zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False):
        yield {"color": colour, "linestyle": dash, "marker": marker}


def draw_diagonal(ax: Any, label: str = "_") -> None:
    """Where confidence equals accuracy."""
    line = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (2, 2)), "zorder": 1}
    ax.plot([0, 1], [0, 1], label=label, **line)


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
