"""Runs one of the paper's analyses: tables as CSV and Markdown, and a figure.

    python benchmarks/analyse.py meta_sets --data .../cifar10_predictions --out FOLDER
    python benchmarks/analyse.py loss_surface --out FOLDER

Analyses that compare methods of the registry take their values from the long table of run.py
(--results), which is completed first where it lacks some.
"""

import argparse
import csv
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import results
from analyses import ANALYSES, Analysis, Context, Table
from gathering import Places
from rightly.atomic_write import write_atomically
from rightly.cli.console import show_warning
from run import add_arguments, places_of, say, selection
from setups import SETUPS


def write_tables(name: str, tables: Sequence[Table], out: Path) -> str:
    """Each table as a CSV file, all of them as one Markdown file; returns the Markdown."""
    parts = []
    for table in tables:
        path = out / (f"{name}.csv" if len(tables) == 1 else f"{name}-{table.name}.csv")
        write_atomically(path, lambda part, table=table: _write_csv(part, table))
        columns = list(table.rows[0])
        parts += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        parts += [
            "| " + " | ".join(_shown(row[column]) for column in columns) + " |"
            for row in table.rows
        ]
        parts.append("")
    text = "\n".join(parts)
    write_atomically(out / f"{name}.md", lambda part: part.write_text(text))
    return text


def write_figure(name: str, analysis: Analysis, tables: Sequence[Table], out: Path) -> None:
    """The figure as PDF for papers and SVG for pages."""
    try:
        import matplotlib
    except ImportError:
        say("no figure, because matplotlib is not installed: pip install 'rightly[plots]'")
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    columns = min(analysis.panels, 3)
    lines = -(-analysis.panels // columns)
    # A fixed salt and no date: the same numbers give the same file.
    style = {"svg.hashsalt": "rightly", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(
            lines, columns, figsize=(4.6 * columns, 3.6 * lines), layout="constrained"
        )
        analysis.draw(tables, axes.ravel())
        for kind in ("pdf", "svg"):
            options: dict[str, Any] = {"CreationDate" if kind == "pdf" else "Date": None}
            write_atomically(
                out / f"{name}.{kind}",
                lambda part, kind=kind, options=options: figure.savefig(
                    part, format=kind, metadata=options
                ),
            )
        pyplot.close(figure)


def _write_csv(path: Path, table: Table) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table.rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in table.rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def _shown(value: Any) -> str:
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
    asked = parser.parse_args()
    warnings.showwarning = show_warning
    try:
        report(asked)
    except (ValueError, TypeError, OSError) as error:
        say(f"analyse.py: {error}")
        return 2
    return 0


def report(asked: argparse.Namespace) -> None:
    """Computes, writes and prints what was asked for."""
    analysis, setup = ANALYSES[asked.analysis], SETUPS[asked.setup]
    asked.out.mkdir(parents=True, exist_ok=True)
    if analysis.needs_data and asked.data is None:
        raise ValueError(f"--data must say where the predictions of {setup.name} are")
    places = places_of(asked, asked.out) if asked.data else Places(Path(), asked.out)
    _, classifiers, seeds = selection(asked, setup)
    context = Context(
        setup,
        places,
        classifiers,
        seeds,
        asked.results or asked.out / "results.csv",
        say,
        lambda text: say(f"{asked.analysis}: {text}"),
    )
    tables = analysis.compute(context)
    if not all(table.rows for table in tables):
        raise ValueError("there was nothing to analyse: see what was skipped above")
    print(f"{analysis.question}\n\n{write_tables(asked.analysis, tables, asked.out)}")
    write_figure(asked.analysis, analysis, tables, asked.out)
    written = results.unique(path.name for path in sorted(asked.out.glob(f"{asked.analysis}*")))
    print(f"in {asked.out}: {', '.join(written)}")


if __name__ == "__main__":
    sys.exit(main())
