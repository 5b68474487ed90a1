"""Options that every command has that reads data sets: what arrays hold, and where labels are."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Annotated, Any

import typer

from rightly.cli.added_options import extend_options
from rightly.cli.inputs import DATA_SETS
from rightly.predictions.reading import read_files_as

Probabilities = Annotated[
    bool,
    typer.Option("--probabilities", help="Arrays and tables hold probabilities, not logits."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="[DATA=]FILE",
        help="Labels of data sets without any: .npy, .pt, .npz or text; repeatable.",
    ),
]


def add_file_options(run: Callable[..., Any]) -> Callable[..., Any]:
    """The command with these options, if it reads data sets."""
    parameters = signature(run).parameters
    if not set(DATA_SETS) & set(parameters):
        return run

    @wraps(run)
    def read_and_run(*, probabilities: bool, labels: list[str] | None, **options: Any) -> Any:
        with read_files_as(probabilities, labels or ()):
            return run(**options)

    added = {"probabilities": (Probabilities, False), "labels": (Labels, None)}
    return extend_options(read_and_run, run, added)
