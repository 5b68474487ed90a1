"""`rightly apply`: a confidence for every prediction."""

import csv
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.atomic_write import write_atomically
from rightly.cli.console import print_line, show_progress
from rightly.cli.engines import Engine, RayAddress, RayWorkers, make_cluster
from rightly.cli.inputs import DATA_SET, CalibratorFile

if TYPE_CHECKING:
    from rightly.batch_inference import Scoring
    from rightly.collection.distributed import Cluster

EXAMPLE = "rightly apply calibrator.safetensors test.npz --out confidence.csv"


def run(
    calibrator: CalibratorFile,
    test: Annotated[Path, typer.Argument(metavar="TEST", help=f"Predictions: {DATA_SET}.")],
    out: Annotated[
        Path, typer.Option(help="Where to write: .csv, or for a folder a Parquet data set.")
    ],
    engine: Engine = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
) -> None:
    """Write a confidence for every prediction."""
    from rightly.batch_inference import Scoring

    cluster = make_cluster(engine, ray_address, ray_workers)
    if cluster and not test.is_dir():
        raise ValueError(f"--engine ray is for folders that collect wrote, got {test}")
    if test.is_dir() and out.suffix != ".csv":
        _score(Scoring.begin(calibrator, test, out), cluster)
        print_line(f"the confidences of {test} are in {out}")
        return
    columns = _compute_columns(calibrator, test, out, cluster)
    write_atomically(out, lambda part: _write_csv(part, columns))
    print_line(f"{len(columns['index'])} confidences are in {out}")


def _compute_columns(
    calibrator: Path, test: Path, out: Path, cluster: "Cluster | None"
) -> dict[str, list[Any]]:
    """What the CSV file holds, row by row in the order of `load`."""
    from rightly.batch_inference import SCORES, Scoring, scores
    from rightly.calibrators import load_calibrator
    from rightly.predictions import load

    if cluster is None:
        fitted, (predictions, _) = load_calibrator(calibrator), load(test)
        columns = {name: values.tolist() for name, values in scores(fitted, predictions).items()}
        names = predictions.class_names or fitted.class_names
        if names:
            columns["class_name"] = [names[i] for i in columns["predicted_class"]]
    else:
        # Beside the file, because all nodes must see it; the system's own would be of each node.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            scoring = Scoring.begin(calibrator, test, Path(folder))
            _score(scoring, cluster)
            joined = scoring.joined()
        columns = {name: joined[name] for name in (*SCORES, "class_name") if name in joined}
    return {"index": list(range(len(columns["confidence"]))), **columns}


def _score(scoring: "Scoring", cluster: "Cluster | None") -> None:
    from rightly.collection.distributed import apply_with

    shards = scoring.target.missing()
    with show_progress(len(shards), "applying, shards") as advance:
        if cluster is not None:
            apply_with(cluster, scoring, advance)
            return
        score = scoring.opened()
        for k in shards:
            score(k)
            advance()


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
