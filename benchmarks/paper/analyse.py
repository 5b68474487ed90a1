"""Runs one of the paper's analyses: tables as CSV and Markdown, and a figure.

    python -m benchmarks.paper.analyse meta_sets --data .../cifar10_predictions --out FOLDER
    python -m benchmarks.paper.analyse loss_surface --out FOLDER

Analyses that compare methods of the registry take their values from the long table
(--results), which is completed first where it lacks some.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.long_table import unique
from benchmarks.paper.analyses import ANALYSES, Analysis, Context, Table
from benchmarks.paper.gathering import Places
from benchmarks.paper.run import add_arguments, notify, read_places, read_selection
from benchmarks.paper.setups import SETUPS
from rightly.files import write_atomically
from rightly.reporting.figures.style import make_grid, save, use_style


def write_tables(name: str, tables: Sequence[Table], out: Path) -> str:
    """Each table as a CSV file, all of them as one Markdown file; returns the Markdown."""
    parts = []
    for table in tables:
        path = out / (f"{name}.csv" if len(tables) == 1 else f"{name}-{table.name}.csv")
        write_atomically(path, lambda part, table=table: _write_csv(part, table))
        columns = list(table.rows[0])
        parts += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        parts += [
            "| " + " | ".join(_format_value(row[column]) for column in columns) + " |"
            for row in table.rows
        ]
        parts.append("")
    text = "\n".join(parts)
    write_atomically(out / f"{name}.md", lambda part: part.write_text(text))
    return text


def write_figure(name: str, analysis: Analysis, tables: Sequence[Table], out: Path) -> None:
    """The figure as PDF for papers and SVG for pages."""
    columns = min(analysis.panels, 3)
    grid = make_grid(-(-analysis.panels // columns), columns, analysis.height)
    with use_style():
        analysis.draw(tables, grid.ravel())
    for ending in (".pdf", ".svg"):
        save(grid.flat[0], out / f"{name}{ending}")


def _write_csv(path: Path, table: Table) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table.rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in table.rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def _format_value(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("analysis", choices=ANALYSES)
    parser.add_argument("--setup", choices=SETUPS, default="cifar10-kit")
    add_arguments(parser, data_required=False)  # the loss surface needs none
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--results", type=Path, help="default: results.csv in the output folder")
    options = parser.parse_args()
    try:
        run_analysis(options)
    except (ValueError, TypeError, OSError) as error:
        notify(f"benchmarks.paper.analyse: {error}")
        return 2
    return 0


def run_analysis(options: argparse.Namespace) -> None:
    """Computes an analysis, prints its tables and writes them and its figure."""
    analysis, setup = ANALYSES[options.analysis], SETUPS[options.setup]
    options.out.mkdir(parents=True, exist_ok=True)
    if analysis.needs_data and options.data is None:
        raise ValueError(f"--data must say where the predictions of {setup.name} are")
    places = read_places(options, options.out) if options.data else Places(Path(), options.out)
    _, classifiers, seeds = read_selection(options, setup)
    context = Context(
        setup,
        places,
        classifiers,
        seeds,
        options.results or options.out / "results.csv",
        notify,
        lambda text: notify(f"{options.analysis}: {text}"),
    )
    tables = analysis.compute(context)
    if not all(table.rows for table in tables):
        raise ValueError("there was nothing to analyse: see what was skipped above")
    print(f"{analysis.question}\n\n{write_tables(options.analysis, tables, options.out)}")
    write_figure(options.analysis, analysis, tables, options.out)
    written = unique(path.name for path in sorted(options.out.glob(f"{options.analysis}*")))
    print(f"in {options.out}: {', '.join(written)}")


if __name__ == "__main__":
    sys.exit(main())
