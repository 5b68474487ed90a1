"""`rightly rank`: methods over several classifiers."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line, print_table

EXAMPLE = "rightly rank resnet.json vgg.json densenet.json"


def run(
    tables: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE...", help="What compare --json wrote, one a classifier."),
    ],
) -> None:
    """Rank methods over several classifiers."""
    from rightly.cli._legacy_reporting import read_results
    from rightly.evaluation.results import mean_ranks
    from rightly.reporting import terminal

    results = {str(path): read_results(path) for path in tables}
    ranks = mean_ranks(results)
    ranked = {rank.calibrator for rank in ranks}
    skipped = {row.calibrator for rows in results.values() for row in rows} - ranked
    if skipped:
        print_line(f"skipped: not in every file ({', '.join(sorted(skipped))})", ERR, style="dim")
    print_table(terminal.rank_table(ranks))
    OUT.print(
        f"\nOver {len(results)} classifiers: mean over test sets ± standard deviation over "
        "classifiers; ranks count from 1 over metrics, test sets and classifiers, and ties share "
        "their mean. Values in %, except NLL."
    )
