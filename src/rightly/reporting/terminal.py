"""Tables in the terminal that say which differences are real, by mark and in words."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rightly.evaluation.results import SIGNIFICANT, Bootstrap, MethodRank, Result, unique
from rightly.metrics import METRICS
from rightly.reporting.tables import IN_NATURAL_UNITS, heading_of

BETTER, WORSE, ALIKE, REFERENCE, WITHIN_NOISE = "▲", "▼", "·", "◆", "°"


def print_verdicts(
    rows: Sequence[Result], console: Console, reference: str, bootstrap: Bootstrap
) -> None:
    """One table a test set, and below it what it shows, in words."""
    for dataset in unique(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        console.print(Text(dataset, style="bold"))
        for table in _fitting(here, reference, console):
            console.print(table)
        for line in [*_floor(here, reference), *words(here, reference)]:
            console.print(line, style="dim", markup=False, soft_wrap=not console.is_terminal)
        console.print()
    console.print(legend(reference, bootstrap), markup=False)


def legend(reference: str, bootstrap: Bootstrap) -> str:
    """What the marks and numbers mean."""
    return (
        f"{BETTER} better and {WORSE} worse than {reference} ({REFERENCE}), {ALIKE} no detectable "
        f"difference: paired bootstrap, {bootstrap.resamples} resamples, seed {bootstrap.seed}, "
        f"Holm-corrected over methods, at {100 * SIGNIFICANT:.0f} %.\n"
        "Beside each value its 95 % interval: where it would lie on another test set of this size. "
        "Values times 100, but nll; binned errors have 25 bins."
    )


def verdict(row: Result, reference: Result | float) -> str:
    """The mark of a value beside that of the reference."""
    base = reference.value if isinstance(reference, Result) else reference
    if math.isnan(row.p_holm):
        return " "
    if row.p_holm > SIGNIFICANT or row.value == base:
        return ALIKE
    lower = METRICS[row.metric].lower_is_better
    return BETTER if (row.value < base) == lower else WORSE


def words(rows: Sequence[Result], reference: str) -> list[str]:
    """For each metric, how many are better, worse, or cannot be told from the reference."""
    lines = []
    for metric in unique(row.metric for row in rows):
        marks = list(_marks([row for row in rows if row.metric == metric], reference).values())
        parts = [
            f"{marks.count(mark)} {said}"
            for mark, said in ((BETTER, "better"), (WORSE, "worse"))
            if mark in marks
        ]
        if marks and not parts:
            lines.append(f"{metric}: no detectable difference between {reference} and any other")
        elif marks:
            if ALIKE in marks:
                parts.append(f"{marks.count(ALIKE)} with no detectable difference")
            lines.append(f"{metric}, beside {reference}: {', '.join(parts)}")
    return lines


def _marks(rows: Sequence[Result], reference: str) -> dict[str, str]:
    """The mark of each calibrator but the reference, by its mean over seeds."""
    means = _means(rows)
    base = means.pop(reference, None)
    if base is None:
        return {}
    marks = {name: verdict(row, base) for name, row in means.items()}
    return {name: mark for name, mark in marks.items() if mark != " "}


def _means(rows: Sequence[Result]) -> dict[str, Result]:
    return {
        name: found[0]._replace(value=float(np.mean([row.value for row in found])))
        for name in unique(row.calibrator for row in rows)
        if (found := [row for row in rows if row.calibrator == name])
    }


def _fitting(rows: Sequence[Result], reference: str, console: Console) -> list[Table]:
    """All metrics in one table, or in as many as the terminal's width asks for."""
    metrics = unique(row.metric for row in rows)
    wide = _table(rows, metrics, reference)
    unbound = console.options.update(max_width=10_000)
    needed = console.measure(wide, options=unbound).maximum
    if not console.is_terminal:
        console.width = max(console.width, needed)  # a file or a pipe has no edge
    for parts in range(1, len(metrics) + 1):
        size = math.ceil(len(metrics) / parts)
        tables = [
            _table(rows, metrics[i : i + size], reference) for i in range(0, len(metrics), size)
        ]
        if all(console.measure(t, options=unbound).maximum <= console.width for t in tables):
            break
    return tables


def _table(rows: Sequence[Result], metrics: Sequence[str], reference: str) -> Table:
    table = Table(
        box=None, header_style="bold", pad_edge=False, padding=(0, 1), collapse_padding=True
    )
    names = unique(row.calibrator for row in rows)
    table.add_column("calibrator", no_wrap=True, min_width=max(map(len, names)))
    columns = []
    for metric in metrics:
        found = [row for row in rows if row.metric == metric]
        table.add_column(heading_of(metric), justify="right", no_wrap=True)
        table.add_column("", no_wrap=True, style="dim")
        columns.append((_means(found), found))
    for name in names:
        cells: list[Text] = []
        for means, found in columns:
            seeds = [row.value for row in found if row.calibrator == name]
            cells += _pair(means[name], means[reference].value, seeds, name == reference)
        table.add_row(name, *cells)
    return table


def _pair(row: Result, base: float, seeds: Sequence[float], is_reference: bool) -> list[Text]:
    """The value with its mark, and its interval."""
    if math.isnan(row.value):
        return [Text("n/a  ", style="dim"), Text("")]
    mark = REFERENCE if is_reference else verdict(row, base)
    factor, digits = scale_of(row.metric)
    text = f"{factor * row.value:.{digits}f}"
    if len(seeds) > 1:
        text += f" ±{factor * float(np.std(seeds)):.{digits}f}"
    text += WITHIN_NOISE if row.value <= row.floor_high else " " * (row.metric == "ece")
    style = {BETTER: "bold", WORSE: "italic"}.get(mark, "")
    return [Text(f"{text} {mark}", style=style), Text(f"{span(row)} ")]


def span(row: Result) -> str:
    """The interval of a value, in the units it is printed in."""
    if math.isnan(row.low):
        return ""
    factor, digits = scale_of(row.metric)
    low, high = (f"{factor * end:.{digits - 1}f}" for end in (row.low, row.high))
    return f"{low}–{high}" if row.low >= 0 else f"{low} to {high}"


def scale_of(metric: str) -> tuple[int, int]:
    """What a metric is multiplied by to be printed, and with how many digits."""
    return (1, 3) if metric in IN_NATURAL_UNITS else (100, 2)


def _floor(rows: Sequence[Result], reference: str) -> list[str]:
    return [
        f"ece noise floor: perfectly calibrated, {reference} would score {100 * row.floor:.2f} on "
        f"average and below {100 * row.floor_high:.2f} 95 times in 100; {WITHIN_NOISE} marks "
        "values within their own floor"
        for row in rows
        if row.calibrator == reference and not math.isnan(row.floor)
    ][:1]


def before_and_after(
    before: Mapping[str, Result], after: Mapping[str, Result], differences: Mapping[str, Result]
) -> Table:
    """One row a metric: the classifier's own confidence, the calibrated one, and what changed."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("metric", no_wrap=True)
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, row in after.items():
        factor, digits = scale_of(name)
        change, mark = differences[name], verdict(row, before[name])
        said = {BETTER: f"{BETTER} better", WORSE: f"{WORSE} worse", " ": ""}
        cells = [_plain(before[name]), span(before[name]), _plain(row), span(row)]
        signed = " to ".join(f"{factor * end:+.{digits - 1}f}" for end in (change.low, change.high))
        known = not math.isnan(change.value)
        cells += [
            f"{factor * change.value:+.{digits}f}" if known else "n/a",
            signed if known else "",
        ]
        table.add_row(heading_of(name), *cells, said.get(mark, f"{ALIKE} no detectable difference"))
    return table


def _plain(row: Result) -> str:
    factor, digits = scale_of(row.metric)
    return "n/a" if math.isnan(row.value) else f"{factor * row.value:.{digits}f}"


def rank_table(ranks_of_methods: Sequence[MethodRank]) -> Table:
    """Calibrators over several classifiers, best mean rank first."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("calibrator", no_wrap=True)
    table.add_column("mean rank", justify="right", no_wrap=True)
    metrics = list(ranks_of_methods[0].mean)
    for metric in metrics:
        table.add_column(heading_of(metric), justify="right", no_wrap=True)
    for one in ranks_of_methods:
        cells = []
        for metric in metrics:
            factor, digits = scale_of(metric)
            cell = f"{factor * one.mean[metric]:.{digits}f}"
            if not math.isnan(one.spread[metric]):
                cell += f" ±{factor * one.spread[metric]:.{digits}f}"
            cells.append(cell)
        table.add_row(one.calibrator, f"{one.mean_rank:.2f}", *cells)
    return table
