"""`rightly evaluate`: every metric, before and after calibration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import OUT, print_line, print_table
from rightly.cli.inputs import (
    DATA_SET,
    BootstrapSeed,
    CalibratorFile,
    Intervals,
    Json,
    read_data_set,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rightly.evaluation.results import Bootstrap, Result

EXAMPLE = "rightly evaluate calibrator.safetensors test.npz --json values.json"


def run(
    calibrator: CalibratorFile,
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help=f"Test predictions with labels: {DATA_SET}.")
    ],
    intervals: Intervals = True,
    resamples: Annotated[
        int, typer.Option("--resamples", help="Bootstrap resamples of each test set.")
    ] = 1000,
    bootstrap_seed: BootstrapSeed = 0,
    json: Json = None,
) -> None:
    """Measure every metric before and after calibration."""
    from rightly.calibrators import load_calibrator
    from rightly.cli._legacy_reporting import write_results
    from rightly.evaluation.measurement import before_and_after, split_by_shift
    from rightly.evaluation.results import Bootstrap

    fitted = load_calibrator(calibrator)
    loaded = read_data_set(test, fitted.view_names)
    bootstrap = Bootstrap(resamples, bootstrap_seed) if intervals else None
    rows: list[Result] = []
    for name, (predictions, labels) in split_by_shift(test.stem, *loaded).items():
        accuracy = float(predictions.correct(labels).double().mean())
        title = f"{fitted.title} on {name}: {len(predictions)} samples, accuracy {accuracy:.1%}"
        print_line(title, style="bold")
        before, after, change = before_and_after(fitted, name, predictions, labels, bootstrap)
        print_table(_make_table(before, after, change, bootstrap))
        OUT.print()
        rows += [*before.values(), *after.values()]
    OUT.print("Values in %, except NLL; ece, ace, mce and classwise_ece use 25 bins.", style="dim")
    if bootstrap is not None:
        OUT.print(
            f"Beside each value its 95 % interval ({bootstrap.resamples} resamples, seed "
            f"{bootstrap.seed}); changes are paired, each tested alone at 5 %.",
            style="dim",
        )
    if json:
        write_results(json, rows, bootstrap)


def _make_table(
    before: "dict[str, Result]",
    after: "dict[str, Result]",
    change: "dict[str, Result]",
    bootstrap: "Bootstrap | None",
) -> "Table":
    from rightly.reporting import tables, terminal

    if bootstrap is not None:
        return terminal.before_and_after(before, after, change)
    values = [{key: row.value for key, row in rows.items()} for rows in (before, after)]
    return tables.before_and_after(*values)
