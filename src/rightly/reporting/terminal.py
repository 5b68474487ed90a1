"""Results in the terminal. No table loses a word: what is too wide is split or folded.

Without a width, as in a pipe or a file, everything has its natural width.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rightly.reporting import layout as layouts
from rightly.reporting.formatting import BETTER, WORSE
from rightly.reporting.layout import Cell, Column, Layout

if TYPE_CHECKING:
    from rightly.evaluation.benchmark import Benchmark
    from rightly.evaluation.compare import Comparison
    from rightly.evaluation.evaluate import Evaluation
    from rightly.evaluation.selection import MethodChoice
    from rightly.evaluation.views import ViewCost, ViewRanking

UNBOUND = 100_000  # wider than any table
STYLES = {BETTER: "bold", WORSE: "italic"}


def show(console: Console, render: Callable[..., RenderableType], *arguments: Any) -> None:
    """Prints what a render function makes of some arguments, as wide as the console allows."""
    if console.is_terminal:
        console.print(render(*arguments, width=console.width))
        return
    rendered = render(*arguments, width=None)
    before = console.width
    console.width = max(before, natural_width(rendered))
    try:
        console.print(rendered)
    finally:
        console.width = before


def render_comparison(
    comparison: "Comparison", width: int | None, *, with_intervals: bool = True
) -> Group:
    """One table with all test sets, or one each; with intervals and tests where there are any."""
    shown = comparison if with_intervals else replace(comparison, resamples=None, reference=None)
    return render_layout(shown.lay_out(), width, side_by_side=shown.resamples is None)


def render_evaluation(evaluation: "Evaluation", width: int | None) -> Group:
    """One table a test set: every metric before and after calibration, and the change."""
    return render_layout(evaluation.lay_out(), width, side_by_side=False, stacks=True)


def render_benchmark(benchmark: "Benchmark", width: int | None) -> Group:
    """Means over classifiers and test sets with mean ranks, then tests beside the reference."""
    layout = benchmark.lay_out()
    shown = replace(layout.select(layout.groups[-2:]), notes=layout.notes)
    parts: list[RenderableType] = [render_layout(shown, width, side_by_side=False)]
    if benchmark.tests is not None:
        tested = benchmark.tests.lay_out()
        parts += [Text(""), render_layout(tested, width, side_by_side=False)]
    return Group(*parts)


def render_views(ranking: "ViewRanking", width: int | None) -> Group:
    """What each view gains alone, and what sets gain that grow by the best view."""
    without = ranking.without
    return Group(
        _line(
            f"Brier score of the confidence without views: {100 * without.brier:.3f}, log loss "
            f"{without.log_loss:.4f}; on images left out of the fit.\n",
            width,
        ),
        render_layout(layouts.lay_out_gains("one view", ranking.alone), width, stacks=True),
        _line("\nSets that grow by the view that gains most:", width),
        render_layout(
            layouts.lay_out_gains("views", ranking.grown, is_grown=True), width, stacks=True
        ),
        _line("\nbrier and gains in %, gains over no views; intervals hold 95 %.", width, "dim"),
    )


def render_view_costs(costs: "Sequence[ViewCost]", width: int | None) -> Group:
    """What budgets of forward passes buy."""
    return render_layout(layouts.lay_out_view_costs(costs), width)


def render_candidates(choice: "MethodChoice", width: int | None) -> Group:
    """The candidates among which a method was selected, and why."""
    return render_layout(layouts.lay_out_candidates(choice), width)


def render_layout(
    layout: Layout, width: int | None, *, side_by_side: bool = True, stacks: bool = False
) -> Group:
    """A table of all groups if it may and fits; else one a group, split or folded to fit.

    Where a table `stacks`, intervals stand below their values before columns are split.
    """
    parts: list[RenderableType] = []
    wide = _draw_groups(layout)
    if side_by_side and (width is None or natural_width(wide) <= width):
        parts.append(wide)
    else:
        for group in layout.groups:
            parts += [Text(group, style="bold")] if group else []
            parts += _fit(layout.select([group]), width, stacks)
            parts += [_line(note, width, "dim") for note in layout.group_notes.get(group, ())]
            parts += [Text("")] if group else []
    if layout.notes and side_by_side:
        parts.append(Text(""))
    parts += [_line(note, width) for note in layout.notes]
    return Group(*parts)


def _draw_groups(layout: Layout) -> Group:
    """One table; the names of groups stand in a line above, as Rich has no wider headings."""
    if layout.groups == [""]:
        return Group(_draw(layout, layout.columns))
    names = max(len(name) for name in (layout.corner, *layout.names))
    title, widths = Text(" " * names), []
    for group in layout.groups:
        columns = [column for column in layout.columns if column.group == group]
        own = [_column_width(column) for column in columns]
        own[-1] += max(0, len(group) - sum(own) - 2 * (len(own) - 1))
        title.append("  " + group.ljust(sum(own) + 2 * (len(own) - 1)), style="bold")
        widths += own
    return Group(title, _draw(layout, layout.columns, widths))


def _column_width(column: Column) -> int:
    return max(len(column.heading), *(len(cell.text) for cell in column.cells))


def _fit(layout: Layout, width: int | None, stacks: bool) -> list[Table]:
    """All columns in one table, or in as many as the width asks for."""
    for is_stacked in (False, True) if stacks else (False,):
        table = _draw(layout, layout.columns, is_stacked=is_stacked)
        if width is None or natural_width(table) <= width:
            return [table]
    assert width is not None
    for count in range(2, len(layout.columns) + 1):
        size = math.ceil(len(layout.columns) / count)
        starts = range(0, len(layout.columns), size)
        tables = [_draw(layout, layout.columns[i : i + size], is_stacked=stacks) for i in starts]
        if all(natural_width(table) <= width for table in tables):
            return tables
    return [_draw(layout, [column], is_stacked=True, folds=True) for column in layout.columns]


def _draw(
    layout: Layout,
    columns: Sequence[Column],
    widths: Sequence[int] | None = None,
    *,
    is_stacked: bool = False,
    folds: bool = False,
) -> Table:
    has_intervals = any(cell.interval for column in columns for cell in column.cells)
    table = Table(
        box=None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=has_intervals,
    )
    keep: dict[str, Any] = {"overflow": "fold"} if folds else {"no_wrap": True}
    table.add_column(Text(layout.corner), **keep)
    drawn: list[list[Text]] = []
    for k, column in enumerate(columns):
        least = None if widths is None else widths[k]
        heading = Text(column.heading)
        table.add_column(heading, justify="right", min_width=least, **keep)
        values, intervals, words = _write_column(column)
        if is_stacked:
            values = [
                Text("\n").join([value, interval]) if interval else value
                for value, interval in zip(values, intervals, strict=True)
            ]
        drawn.append(values)
        if any(intervals) and not is_stacked:
            table.add_column("", style="dim", **keep)
            drawn.append(intervals)
        if any(words):
            table.add_column("", overflow="fold", no_wrap=not is_stacked)
            drawn.append(words)
    for i, name in enumerate(layout.names):
        table.add_row(Text(name), *(texts[i] for texts in drawn))
    return table


def _write_column(column: Column) -> tuple[list[Text], list[Text], list[Text]]:
    """Values with their marks, intervals, and marks that are words, for columns of their own."""
    has_tests = any(cell.mark for cell in column.cells)
    has_words = any(len(cell.mark) > 1 for cell in column.cells)
    has_flags = any(cell.flag for cell in column.cells)

    def write(cell: Cell) -> Text:
        if cell.is_missing:
            return Text("n/a  " if has_tests and not has_words else "n/a", style="dim")
        text = cell.text + (cell.flag or " " * has_flags)
        if has_tests and not has_words:
            return Text(f"{text} {cell.mark or ' '}", style=STYLES.get(cell.mark, ""))
        return Text(text, style="bold" if cell.is_best else "")

    values = [write(cell) for cell in column.cells]
    intervals = [Text(f"{cell.interval} " if cell.interval else "") for cell in column.cells]
    words = [Text(cell.mark if has_words else "") for cell in column.cells]
    return values, intervals, words


def _line(text: str, width: int | None, style: str = "") -> Text:
    """A paragraph, on one line where there is no edge."""
    if width is None:
        return Text(text, style=style, no_wrap=True, overflow="ignore")
    return Text(text, style=style)


def natural_width(renderable: RenderableType) -> int:
    console = Console(width=UNBOUND, file=io.StringIO())
    return console.measure(renderable).maximum
