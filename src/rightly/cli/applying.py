"""The command that scores predictions: apply."""

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rightly.atomic_write import write_atomically
from rightly.batch_inference import SCORES, Scoring, apply_with, scores
from rightly.calibrators import load_calibrator
from rightly.cli import engines
from rightly.cli.consoles import ERR, OUT
from rightly.collection.ray_cluster import Cluster
from rightly.predictions import load


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
    calibrator, test, out = Path(chosen.calibrator), Path(chosen.test), Path(chosen.out)
    if cluster and not test.is_dir():
        raise ValueError(f"--engine ray is for folders that collect wrote, got {test}")
    if test.is_dir() and out.suffix != ".csv":
        scoring = Scoring.begin(calibrator, test, out)
        _score(scoring, cluster)
        OUT.print(f"the confidences of {test} are in {out}", soft_wrap=True)
        return
    columns = _columns(calibrator, test, out, cluster)
    write_atomically(out, lambda part: _write_csv(part, columns))
    OUT.print(f"{len(columns['index'])} confidences are in {out}", soft_wrap=True)


def _columns(
    calibrator: Path, test: Path, out: Path, cluster: Cluster | None
) -> dict[str, list[Any]]:
    """What the CSV file holds, row by row in the order of `load`."""
    if cluster is None:
        fitted, (predictions, _) = load_calibrator(calibrator), load(test)
        said = {name: values.tolist() for name, values in scores(fitted, predictions).items()}
        names = predictions.class_names or fitted.class_names
        if names:
            said["class_name"] = [names[i] for i in said["predicted_class"]]
    else:
        # Beside the file, because all nodes must see it; the system's own would be of each node.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            scoring = Scoring.begin(calibrator, test, Path(folder))
            _score(scoring, cluster)
            joined = scoring.join()
        said = {name: joined[name] for name in (*SCORES, "class_name") if name in joined}
    return {"index": list(range(len(said["confidence"]))), **said}


def _score(scoring: Scoring, cluster: Cluster | None) -> None:
    todo = scoring.target.missing()
    with _progress(len(todo)) as advance:
        if cluster is not None:
            apply_with(cluster, scoring, advance)
            return
        score = scoring.open()
        for k in todo:
            score(k)
            advance(1)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    with Progress(
        TextColumn("applying, shards"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
