"""The command that scores predictions: apply."""

import argparse
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rightly.batch_inference import apply
from rightly.cli import engines
from rightly.cli.consoles import ERR, OUT


def add_commands(commands: Any) -> None:
    """The command of this module and its arguments."""
    add = commands.add_parser("apply", help="a confidence for every prediction")
    add.add_argument("calibrator", help="a saved calibrator (.safetensors)")
    add.add_argument("test", help="predictions (.npz, or a folder that collect wrote)")
    add.add_argument(
        "--out", required=True, help="where to write: .csv, or for a folder a Parquet data set"
    )
    engines.add_arguments(add)
    add.set_defaults(run=_apply)


def _apply(chosen: argparse.Namespace) -> None:
    cluster = engines.cluster_of(chosen)
    if cluster and not Path(chosen.test).is_dir():
        raise ValueError(f"--engine ray is for folders that collect wrote, got {chosen.test}")
    with Progress(
        TextColumn("applying, shards"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=0)
        rows = apply(
            chosen.calibrator,
            chosen.test,
            chosen.out,
            cluster=cluster,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    told = f"the confidences of {chosen.test}" if rows is None else f"{rows} confidences"
    OUT.print(f"{told} are in {chosen.out}", soft_wrap=True)
