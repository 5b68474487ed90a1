"""Tables in the terminal: the paper's layout, best values in bold."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from rightly.calibrators import CALIBRATORS
from rightly.evaluation.measurement import Result, metric
from rightly.metrics import METRICS

IN_NATURAL_UNITS = ("nll",)  # every other metric is a share and printed times 100


def comparison(rows: Sequence[Result], datasets: Sequence[str] | None = None) -> Group:
    """Rows are calibrators, columns are metrics per test set; the best of each column is bold."""
    sets = list(datasets) if datasets is not None else _unique(row.dataset for row in rows)
    calibrators = _unique(row.calibrator for row in rows)
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        values.setdefault((row.calibrator, row.dataset, row.metric), []).append(row.value)
    names = max(map(len, calibrators))
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("calibrator", no_wrap=True, min_width=names)
    columns, titles = [], Text(" " * max(names, len("calibrator")))
    for dataset in sets:
        group = 0
        for name in _unique(row.metric for row in rows):
            found = [values.get((one, dataset, name), []) for one in calibrators]
            best = _best([float(np.mean(v)) for v in found if v], name)
            columns.append([_cell(v, name, best) for v in found])
            width = max(len(heading_of(name)), *(cell.cell_len for cell in columns[-1]))
            table.add_column(heading_of(name), justify="right", no_wrap=True, min_width=width)
            group += width + 2
        # Rich has no heading over several columns, so test sets are named in a line above.
        titles.append("  " + dataset[: group - 2].ljust(group - 2), style="bold")
    for i, one in enumerate(calibrators):
        table.add_row(one, *(column[i] for column in columns))
    return Group(titles, table)


def print_comparison(rows: Sequence[Result], console: Console) -> None:
    """One wide table, or one a test set where the terminal is too narrow."""
    wide = comparison(rows)
    needed = console.measure(wide, options=console.options.update(max_width=10_000)).maximum
    if not console.is_terminal:
        console.width = max(console.width, needed)  # a file or a pipe has no edge
    if needed <= console.width:
        console.print(wide)
        return
    for dataset in _unique(row.dataset for row in rows):
        console.print(comparison(rows, [dataset]))
        console.print()


def before_and_after(before: Mapping[str, float], after: Mapping[str, float]) -> Table:
    """One row a metric: the classifier's own confidence against the calibrated one."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2))
    table.add_column("metric")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for name in after:
        best = _best([before[name], after[name]], name)
        cells = [_cell([values[name]], name, best) for values in (before, after)]
        table.add_row(heading_of(name), *cells)
    return table


def methods_table() -> Table:
    """What there is: name, paper, what input it needs."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("name", no_wrap=True)
    table.add_column("needs", no_wrap=True)
    table.add_column("paper", max_width=36)
    table.add_column("note", ratio=1)
    for name, entry in CALIBRATORS.items():
        needs = "logits" + "".join(f", {need}" for need in entry.needs)
        needs += "".join(f" ({use})" for use in entry.uses)
        table.add_row(name, needs, entry.paper, entry.note)
    return table


def heading_of(name: str) -> str:
    """A metric's column heading, with its direction."""
    lower = METRICS[name].lower_is_better
    return name + ("" if lower is None else " ↓" if lower else " ↑")


def _best(values: Sequence[float], name: str) -> float:
    known = [value for value in values if not math.isnan(value)]
    lower = metric(name).lower_is_better
    if not known or lower is None:
        return math.nan
    return min(known) if lower else max(known)


def _cell(values: Sequence[float], name: str, best: float) -> Text:
    if not values or math.isnan(mean := float(np.mean(values))):
        return Text("n/a", style="dim")
    factor, digits = (1, 3) if name in IN_NATURAL_UNITS else (100, 2)
    text = f"{factor * mean:.{digits}f}"
    if len(values) > 1:
        text += f" ±{factor * float(np.std(values)):.{digits}f}"
    return Text(text, style="bold" if mean == best else "")


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
