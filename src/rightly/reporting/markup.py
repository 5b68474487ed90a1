"""Laid-out tables as LaTeX, Markdown and HTML."""

from collections.abc import Sequence
from html import escape

from rightly.reporting.formatting import BETTER, REFERENCE, SAME, WORSE
from rightly.reporting.layout import Cell, Layout

LATEX_MARKS = {BETTER: "$^{+}$", WORSE: "$^{-}$", SAME: "", REFERENCE: "$^{*}$", "": ""}
LATEX_TEXT = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "°": r"$^{\circ}$",
}

STYLE = (
    "body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem;color:#111;background:#fff}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}"
    "thead th[colspan]{text-align:center}"
    "tbody th,thead th:first-child{position:sticky;left:0;background:#fff;text-align:left}"
    "tbody th{font-weight:normal}td small{color:#555;white-space:nowrap}"
    "p{max-width:60rem}img{max-width:100%}"
)


def to_markdown(layout: Layout) -> str:
    """One pipe table a group of columns, the best of each column in bold."""
    parts = []
    for group in layout.groups:
        chosen = layout.select([group])
        headings = [layout.corner, *(column.heading for column in chosen.columns)]
        lines = [] if not group else [f"**{escape_markdown(group)}**", ""]
        lines.append(_join_pipes([escape_markdown(heading) for heading in headings]))
        lines.append(_join_pipes(["---", *("---:" for _ in chosen.columns)]))
        for i, name in enumerate(layout.names):
            cells = [_write_markdown_cell(column.cells[i]) for column in chosen.columns]
            lines.append(_join_pipes([escape_markdown(name), *cells]))
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, *map(escape_markdown, layout.notes)]) + "\n"


def _write_markdown_cell(cell: Cell) -> str:
    text = f"{cell.text}{cell.flag}"
    text = f"**{text}**" if cell.is_best else text
    interval = f" ({cell.interval})" if cell.interval else ""
    return f"{text}{interval} {cell.mark}".rstrip()


def _join_pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line and in one cell of a table."""
    for character in "\\|*_[]<>`~&":
        text = text.replace(character, f"\\{character}")
    return to_line(text)


def to_line(text: str) -> str:
    """Text on one line, without what cannot be printed or written as UTF-8."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def to_latex(layout: Layout) -> str:
    """A booktabs table, the best of each column in bold; the notes are comments above it."""
    groups = layout.groups
    sizes = [sum(column.group == group for column in layout.columns) for group in groups]
    lines = [f"% {note}" for note in layout.notes]
    if any(cell.mark for column in layout.columns for cell in column.cells):
        lines.append("% ^+ better, ^- worse than ^*; without a mark no detectable difference")
    lines += [rf"\begin{{tabular}}{{l{'r' * len(layout.columns)}}}", r"\toprule"]
    if groups != [""]:
        over = [
            rf"\multicolumn{{{size}}}{{c}}{{{_escape_latex(group)}}}"
            for group, size in zip(groups, sizes, strict=True)
        ]
        lines.append(" & ".join(["", *over]) + r" \\")
        start = 2
        rules = []
        for size in sizes:
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
            start += size
        lines.append("".join(rules))
    headings = [layout.corner, *(column.heading for column in layout.columns)]
    lines.append(" & ".join(map(_escape_latex, headings)) + r" \\")
    lines.append(r"\midrule")
    for i, name in enumerate(layout.names):
        cells = [_write_latex_cell(column.cells[i]) for column in layout.columns]
        lines.append(" & ".join([_escape_latex(name), *cells]) + r" \\")
        intervals = [_write_latex_interval(column.cells[i]) for column in layout.columns]
        if layout.stacks_intervals and any(intervals):
            lines.append(" & ".join(["", *intervals]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _write_latex_cell(cell: Cell) -> str:
    text = _escape_latex(cell.text + cell.flag)
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    return text + LATEX_MARKS[cell.mark[:1]]


def _write_latex_interval(cell: Cell) -> str:
    return rf"{{\tiny {_escape_latex(cell.interval)}}}" if cell.interval else ""


def _escape_latex(text: str) -> str:
    return "".join(LATEX_TEXT.get(character, character) for character in text)


def to_page(title: str, body: str) -> str:
    """A whole page that needs nothing else."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def to_html(layout: Layout) -> str:
    """One table, the best of each column in bold, with intervals in small print below values."""
    groups = layout.groups
    over = "".join(
        f'<th colspan="{sum(column.group == group for column in layout.columns)}">'
        f"{escape(group)}</th>"
        for group in groups
    )
    headings = "".join(f"<th>{escape(column.heading)}</th>" for column in layout.columns)
    rows = [f"<tr><th></th>{over}</tr>"] if groups != [""] else []
    rows.append(f"<tr><th>{escape(layout.corner)}</th>{headings}</tr>")
    body = [
        f"<tr><th>{escape(name)}</th>"
        + "".join(_write_html_cell(column.cells[i]) for column in layout.columns)
        + "</tr>"
        for i, name in enumerate(layout.names)
    ]
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in layout.notes)
    return f"<table><thead>{''.join(rows)}</thead><tbody>{''.join(body)}</tbody></table>{notes}"


def _write_html_cell(cell: Cell) -> str:
    text = escape(cell.text + cell.flag)
    text = f"<b>{text}</b>" if cell.is_best else text
    mark = f" {escape(cell.mark)}" if cell.mark else ""
    interval = f"<br><small>{escape(cell.interval)}</small>" if cell.interval else ""
    return f"<td>{text}{mark}{interval}</td>"
