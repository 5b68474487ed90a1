"""Prints the paper's tables from the long table, ours beside the published values.

    python -m benchmarks.paper.tables results.csv [--setup cifar10-kit] \
        [--format markdown|latex|csv]

A cell is the mean over classifiers (each over its seeds), ± their standard deviation, and in
brackets what the paper prints. The last columns are mean ranks over classifiers and test sets, 1 is
best, ties shared. Of an unfinished run only the classifiers are compared that have every method and
test set that any has; the others are named below the table.
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.long_table import (
    Entry,
    average_seeds,
    parse_names,
    rank_methods,
    read_entries,
    unique,
)
from benchmarks.paper import published
from benchmarks.paper.setups import SETUPS, Setup
from benchmarks.paper.table_formats import FORMATS, Cell, Line, Sheet
from rightly.metrics import METRICS

Values = dict[tuple[str, str, str, str], float]  # method, classifier, test set, metric


class Columns(NamedTuple):
    """The test sets and metrics of a table, each with the paper's name where it has one."""

    tests: dict[str, str | None]
    metrics: list[str]


def build_sheets(entries: Sequence[Entry], setup: Setup, metrics: Sequence[str]) -> list[Sheet]:
    """The paper's tables of one setup, with our values."""
    of_setup, unfinished = select_common(
        [entry for entry in entries if entry.setup == setup.name and entry.metric in metrics]
    )
    nearest = {images.name: images.published for images in setup.tests}
    names = unique(entry.test_set for entry in of_setup) or list(nearest)
    columns = Columns({name: nearest.get(name) for name in names}, list(metrics))
    cells = [cell for cell in published.read_published() if cell.setup == setup.published]
    sheets = []
    for table in unique(cell.table for cell in cells):
        of_table = [cell for cell in cells if cell.table == table]
        named = {published.METHODS[cell.method]: cell.method for cell in of_table}
        if table != "pre-hoc":
            own = unique(entry.method for entry in of_setup)
            named |= {method: method for method in own if method not in named}
        printed = {
            (
                published.METHODS[cell.method],
                cell.test_set,
                published.METRICS[cell.metric],
            ): cell.value
            for cell in of_table
        }
        sheet = build_sheet(table, setup, named, columns, of_setup, printed)
        notes = [*sheet.notes, *([unfinished] if unfinished else [])]
        sheets.append(sheet._replace(notes=notes))
    return sheets


def select_common(entries: Sequence[Entry]) -> tuple[list[Entry], str]:
    """The rows of the classifiers that have all that any has, and a note on the others.

    Means over different classifiers cannot be compared.
    """
    has: dict[str, set[tuple[str, str, str]]] = {}
    for entry in entries:
        cell = entry.method, entry.test_set, entry.metric
        has.setdefault(entry.classifier, set()).add(cell)
    every = set().union(*has.values())
    lacking = {name: len(every - cells) for name, cells in has.items() if cells != every}
    if not lacking:
        return list(entries), ""
    listed = ", ".join(f"{name} (lacks {count})" for name, count in lacking.items())
    if len(lacking) == len(has):
        raise ValueError(
            f"every classifier lacks some of the {len(every)} values that others have, {listed}: "
            "finish the run with benchmarks.paper.run, or give its --methods and --classifiers "
            "another --out"
        )
    note = f"Unfinished run, compared without {listed} of {len(every)} values each."
    return [entry for entry in entries if entry.classifier not in lacking], note


def build_sheet(
    table: str,
    setup: Setup,
    named: dict[str, str],
    columns: Columns,
    entries: Sequence[Entry],
    printed: dict[tuple[str, str, str], float],
) -> Sheet:
    """One table: a line a method, a column a test set and metric, and mean ranks at the end."""
    values = to_percent(average_seeds(entries))
    ranks = rank_by_metric(entries, named, columns.metrics)
    lines = []
    for method, title in named.items():
        cells = []
        for test, nearest in columns.tests.items():
            for metric in columns.metrics:
                value = printed.get((method, nearest or "", metric))
                cells.append(Cell(*compute_spread(values, method, test, metric), value))
        cells += [Cell(ranks.get((method, metric)), None, None) for metric in columns.metrics]
        lines.append(Line(title, method, tuple(cells)))
    groups = [
        test if nearest is None or setup.same_as_published else f"{test} (paper: {nearest})"
        for test, nearest in columns.tests.items()
    ]
    return Sheet(
        title=published.TABLES[table],
        number=table,
        setup=setup.name,
        groups=(*groups, "mean rank"),
        metrics=columns.metrics,
        lines=lines,
        notes=write_notes(setup, columns.metrics, len({key[1] for key in values})),
    )


def to_percent(values: Values) -> Values:
    """Shares in %, as the paper prints them; NLL in nats."""
    return {key: value * (1 if key[3] == "nll" else 100) for key, value in values.items()}


def compute_spread(
    values: Values, method: str, test: str, metric: str
) -> tuple[float | None, float | None]:
    """Mean and standard deviation over classifiers."""
    of_cell = [
        value
        for (one, _, where, what), value in values.items()
        if (one, where, what) == (method, test, metric) and not np.isnan(value)
    ]
    if not of_cell:
        return None, None
    return float(np.mean(of_cell)), float(np.std(of_cell)) if len(of_cell) > 1 else None


def rank_by_metric(
    entries: Sequence[Entry], methods: Collection[str], metrics: Sequence[str]
) -> dict[tuple[str, str], float]:
    """Mean rank of each method in each metric, over classifiers and test sets."""
    ranks: dict[tuple[str, str], float] = {}
    for metric in metrics:
        if METRICS[metric].lower_is_better is None:
            continue  # a diagnostic has no best
        # One metric at a time: a method that lacks one is still ranked in the others.
        rows = [entry for entry in entries if entry.metric == metric and entry.method in methods]
        ranks |= {(one.calibrator, metric): one.rank[metric] for one in rank_methods(rows)}
    return ranks


def write_notes(setup: Setup, metrics: Sequence[str], count: int) -> list[str]:
    """What a reader has to know to compare ours with the published values."""
    ours = (
        f"mean over {count} classifiers ± their standard deviation"
        if count > 1
        else "one classifier"
    )
    notes = [f"Ours: {ours}, in %, except NLL; in brackets what the paper prints."] if count else []
    if not setup.same_as_published:
        notes.append(
            "Other classifiers and images than the paper's: its values are for orientation only."
        )
    if "ks_released" in metrics:
        notes.append(
            "KS is the released code's, which sorts by correctness (ks_released); the true one is "
            "to be had by --metrics ece,brier,ks,auroc."
        )
    if not count:
        notes.append("No results of this setup: only the published values are shown.")
    return notes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="the long table that benchmarks.paper.run wrote")
    parser.add_argument("--setup", choices=SETUPS, help="default: all that the results hold")
    parser.add_argument("--format", choices=FORMATS, default="markdown")
    parser.add_argument("--metrics", help="default: the paper's, ece,brier,ks_released,auroc")
    options = parser.parse_args()
    try:
        if not options.results.is_file():
            raise FileNotFoundError(
                f"there is no file {options.results}: write it with benchmarks.paper.run"
            )
        entries = read_entries(options.results)
        metrics = list(published.METRICS.values())
        if options.metrics:
            metrics = parse_names(options.metrics, list(METRICS), "--metrics")
        names = [options.setup] if options.setup else unique(entry.setup for entry in entries)
        sheets = [one for name in names for one in build_sheets(entries, SETUPS[name], metrics)]
    except (ValueError, OSError) as error:
        print(f"benchmarks.paper.tables: {error}", file=sys.stderr)
        return 2
    print(FORMATS[options.format](sheets), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
