"""`rightly rank`: methods over several classifiers."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, print_line
from rightly.cli.inputs import Json

EXAMPLE = "rightly rank resnet.json vgg.json densenet.json"


def run(
    tables: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE...", help="What compare --json wrote, one a classifier."),
    ],
    json: Json = None,
) -> None:
    """Rank methods over several classifiers."""
    from rightly.reporting import rank
    from rightly.reporting.terminal import render_ranking, show

    ranking = rank({str(path): path for path in tables})
    if ranking.skipped:
        message = f"skipped: not in every file ({', '.join(ranking.skipped)})"
        print_line(message, ERR, style="dim")
    show(OUT, render_ranking, ranking)
    if json:
        ranking.to_json(json)
