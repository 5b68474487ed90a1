"""Prints the paper's tables from results of run.py, ours beside the published values.

    python benchmarks/tables.py results.csv [--setup cifar10-kit] [--format markdown|latex|csv]

A cell is the mean over classifiers (each over its seeds), ± their spread, and in brackets what
the paper prints. The last columns are mean ranks over classifiers and test sets, 1 is best.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import paper
import results
from results import Result
from rightly.metrics import METRICS
from setups import SETUPS, Setup
from table_formats import FORMATS, Cell, Line, Sheet

Values = dict[tuple[str, str, str, str], float]  # method, classifier, test set, metric


class Columns(NamedTuple):
    """The test sets and metrics of a table, each with the paper's name where it has one."""

    tests: dict[str, str | None]
    metrics: list[str]


def sheets(rows: Sequence[Result], setup: Setup, metrics: Sequence[str]) -> list[Sheet]:
    """The paper's tables of one setup, filled with our values."""
    of_setup = [row for row in rows if row.setup == setup.name]
    values = over_seeds(of_setup)
    nearest = {images.name: images.published for images in setup.tests}
    found = results.unique(row.test_set for row in of_setup) or list(nearest)
    tests = {name: nearest.get(name) for name in found}
    cells = [cell for cell in paper.published() if cell.setup == setup.published]
    made = []
    for table in results.unique(cell.table for cell in cells):
        of_table = [cell for cell in cells if cell.table == table]
        named = {paper.METHODS[cell.method]: cell.method for cell in of_table}
        if table != "pre-hoc":
            named |= {row.method: row.method for row in of_setup if row.method not in named}
        printed = {
            (paper.METHODS[cell.method], cell.test_set, paper.METRICS[cell.metric]): cell.value
            for cell in of_table
        }
        columns = Columns(tests, list(metrics))
        made.append(sheet(table, setup, named, columns, values, printed))
    return made


def sheet(
    table: str,
    setup: Setup,
    named: dict[str, str],
    columns: Columns,
    values: Values,
    printed: dict[tuple[str, str, str], float],
) -> Sheet:
    """One table: a line a method, a column a test set and metric, and mean ranks at the end."""
    ranks = mean_ranks(values, list(named), columns)
    lines = []
    for method, title in named.items():
        cells = []
        for test, nearest in columns.tests.items():
            for metric in columns.metrics:
                known = printed.get((method, nearest or "", metric))
                cells.append(Cell(*spread(values, method, test, metric), known))
        cells += [Cell(ranks.get((method, metric)), None, None) for metric in columns.metrics]
        lines.append(Line(title, method, tuple(cells)))
    groups = [
        test if nearest is None or setup.same_as_published else f"{test} (paper: {nearest})"
        for test, nearest in columns.tests.items()
    ]
    return Sheet(
        title=paper.TABLES[table],
        number=table,
        setup=setup.name,
        groups=(*groups, "mean rank"),
        metrics=columns.metrics,
        lines=lines,
        notes=notes(setup, columns.metrics, len({key[1] for key in values})),
    )


def over_seeds(rows: Sequence[Result]) -> Values:
    """Mean over seeds; shares are times 100, as the paper prints them."""
    gathered: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        key = (row.method, row.classifier, row.test_set, row.metric)
        gathered.setdefault(key, []).append(row.value)
    return {
        key: float(np.mean(found)) * (1 if key[3] == "nll" else 100)
        for key, found in gathered.items()
    }


def spread(
    values: Values, method: str, test: str, metric: str
) -> tuple[float | None, float | None]:
    """Mean and standard deviation over classifiers."""
    found = [
        value
        for (one, _, where, what), value in values.items()
        if (one, where, what) == (method, test, metric) and not np.isnan(value)
    ]
    if not found:
        return None, None
    return float(np.mean(found)), float(np.std(found)) if len(found) > 1 else None


def mean_ranks(
    values: Values, methods: Sequence[str], columns: Columns
) -> dict[tuple[str, str], float]:
    """Rank among the methods for each classifier and test set, averaged; only where all have one.

    A method that some classifiers lack takes no part, because its rank would be among fewer.
    """
    places = results.unique(key[1] for key in values)
    keys = [(classifier, test) for classifier in places for test in columns.tests]
    ranks: dict[tuple[str, str], float] = {}
    for metric in columns.metrics:
        if METRICS[metric].lower_is_better is None:
            continue  # a diagnostic has no best
        complete = [
            one for one in methods if all((one, *key, metric) in values for key in keys) and keys
        ]
        if not complete:
            continue
        sign = -1 if METRICS[metric].lower_is_better is False else 1
        matrix = sign * np.array(
            [[values[(one, *key, metric)] for key in keys] for one in complete]
        )
        # Ties share the mean of their places.
        below = (matrix[:, None] > matrix[None]).sum(1)
        equal = (matrix[:, None] == matrix[None]).sum(1)
        mean = (below + (equal + 1) / 2).mean(1)
        ranks |= {(one, metric): float(rank) for one, rank in zip(complete, mean, strict=True)}
    return ranks


def notes(setup: Setup, metrics: Sequence[str], count: int) -> list[str]:
    """What a reader has to know to compare ours with the published values."""
    ours = (
        f"mean over {count} classifiers ± their standard deviation"
        if count > 1
        else "one classifier"
    )
    told = [f"Ours: {ours}, times 100; in brackets what the paper prints."] if count else []
    if not setup.same_as_published:
        told.append(
            "Other classifiers and images than the paper's: its values are for orientation only."
        )
    if "ks_released" in metrics:
        told.append(
            "KS is the released code's, which sorts by correctness (ks_released); the true one is "
            "to be had by --metrics ece,brier,ks,auroc."
        )
    if not count:
        told.append("No results of this setup: only the published values are shown.")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="a table that run.py wrote")
    parser.add_argument("--setup", choices=SETUPS, help="default: all that the results hold")
    parser.add_argument("--format", choices=FORMATS, default="markdown")
    parser.add_argument("--metrics", help="default: the paper's, ece,brier,ks_released,auroc")
    asked = parser.parse_args()
    try:
        if not asked.results.is_file():
            raise FileNotFoundError(f"there is no file {asked.results}: write it with run.py")
        rows = results.read(asked.results)
        metrics = list(paper.METRICS.values())
        if asked.metrics:
            metrics = results.chosen(asked.metrics, list(METRICS), "metrics")
        names = [asked.setup] if asked.setup else results.unique(row.setup for row in rows)
        made = [one for name in names for one in sheets(rows, SETUPS[name], metrics)]
    except (ValueError, OSError) as error:
        print(f"tables.py: {error}", file=sys.stderr)
        return 2
    print(FORMATS[asked.format](made), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
