"""A table with groups of columns as Markdown, LaTeX or CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rightly.metrics import METRICS

COLUMNS = ("table", "setup", "test_set", "method", "metric", "mean", "spread", "published")
HEADINGS = {"ece": "ECE", "brier": "BS", "ks_released": "KS", "ks": "true KS", "auroc": "AUC"}


class Cell(NamedTuple):
    """Our mean and spread, and the published value; None where there is none."""

    mean: float | None
    spread: float | None
    published: float | None


class Line(NamedTuple):
    """One method: the paper's name for it, ours, and its cells."""

    title: str
    method: str
    cells: tuple[Cell, ...]


class Sheet(NamedTuple):
    """One table; every group of columns has all the metrics."""

    title: str
    number: str
    setup: str
    groups: tuple[str, ...]
    metrics: Sequence[str]
    lines: Sequence[Line]
    notes: Sequence[str]


def format_headings(sheet: Sheet, group: str, arrows: tuple[str, str]) -> list[str]:
    """The metrics with their directions; ranks, the last group, have none."""
    names = []
    for metric in sheet.metrics:
        lower = METRICS[metric].lower_is_better
        mark = "" if lower is None else arrows[0] if lower else arrows[1]
        names.append(HEADINGS.get(metric, metric) + ("" if group == sheet.groups[-1] else mark))
    return names


def find_best(sheet: Sheet) -> list[float | None]:
    """Our best value of each column; in the last group, of ranks, the lowest is best."""
    width = len(sheet.metrics)
    best: list[float | None] = []
    for i in range(width * len(sheet.groups)):
        means = [line.cells[i].mean for line in sheet.lines]
        measured = [mean for mean in means if mean is not None]
        is_rank = i >= width * (len(sheet.groups) - 1)
        high = METRICS[sheet.metrics[i % width]].lower_is_better is False and not is_rank
        best.append(None if not measured else max(measured) if high else min(measured))
    return best


def format_cell(cell: Cell, best: float | None, bold: str, plus_minus: str) -> str:
    """`5.53 ±0.41 (11.45)`, our value in bold where it is the best."""
    if cell.mean is None:
        return "–" if cell.published is None else f"– ({cell.published:.2f})"
    ours = f"{cell.mean:.2f}"
    if cell.mean == best:
        ours = bold.format(ours)
    if cell.spread is not None:
        ours += f" {plus_minus}{cell.spread:.2f}"
    return ours if cell.published is None else f"{ours} ({cell.published:.2f})"


def write_markdown(sheets: Sequence[Sheet]) -> str:
    out = []
    for sheet in sheets:
        heads = [
            f"{group}: {name}" if not i else name
            for group in sheet.groups
            for i, name in enumerate(format_headings(sheet, group, (" ↓", " ↑")))
        ]
        top = find_best(sheet)
        out += [f"### {sheet.title} ({sheet.setup})", "", f"| method | {' | '.join(heads)} |"]
        out.append("|---" + "|---:" * len(heads) + "|")
        for line in sheet.lines:
            cells = [
                format_cell(cell, mark, "**{}**", "±")
                for cell, mark in zip(line.cells, top, strict=True)
            ]
            out.append(f"| {_format_method(line)} | {' | '.join(cells)} |")
        out += ["", *(f"{note}  " for note in sheet.notes), ""]
    return "\n".join(out) + "\n"


def write_latex(sheets: Sequence[Sheet]) -> str:
    out = []
    for sheet in sheets:
        width, top = len(sheet.metrics), find_best(sheet)
        over = " & ".join(
            rf"\multicolumn{{{width}}}{{c}}{{{_escape(group)}}}" for group in sheet.groups
        )
        arrows = (r"$\downarrow$", r"$\uparrow$")
        heads = " & ".join(
            _escape(name)
            for group in sheet.groups
            for name in format_headings(sheet, group, arrows)
        )
        out += [r"\begin{table*}[t]", r"\centering\scriptsize"]
        out.append(rf"\caption{{{_escape(sheet.title)} ({_escape(sheet.setup)}). ")
        out.append(" ".join(_escape(note) for note in sheet.notes) + "}")
        out.append(rf"\begin{{tabular}}{{l{' ' + 'r' * width * len(sheet.groups)}}}")
        out += [r"\toprule", rf"Method & {over} \\", rf" & {heads} \\", r"\midrule"]
        for line in sheet.lines:
            cells = [
                format_cell(cell, mark, r"\textbf{{{}}}", r"$\pm$").replace("–", "--")
                for cell, mark in zip(line.cells, top, strict=True)
            ]
            out.append(rf"{_escape(line.title)} & {' & '.join(cells)} \\")
        out += [r"\bottomrule", r"\end{tabular}", r"\end{table*}", ""]
    return "\n".join(out)


def write_csv(sheets: Sequence[Sheet]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sheet in sheets:
        for line in sheet.lines:
            cells = iter(line.cells)
            for group in sheet.groups:
                for metric in sheet.metrics:
                    values = ["" if value is None else f"{value:.4f}" for value in next(cells)]
                    writer.writerow(
                        [sheet.number, sheet.setup, group, line.method, metric, *values]
                    )
    return file.getvalue()


def _format_method(line: Line) -> str:
    return line.title if line.title == line.method else f"{line.title} `{line.method}`"


def _escape(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%").replace("±", r"$\pm$")


FORMATS: dict[str, Callable[[Sequence[Sheet]], str]] = {
    "markdown": write_markdown,
    "latex": write_latex,
    "csv": write_csv,
}
