"""`rightly apply`: a confidence for every prediction."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line, show_steps
from rightly.cli.engines import Engine, RayAddress, RayWorkers, make_cluster
from rightly.cli.inputs import DATA_SET, AnyClassifier, CalibratorFile, Probabilities

EXAMPLE = "rightly apply calibrator.safetensors test.npz --out confidence.csv"


def run(
    calibrator: CalibratorFile,
    test: Annotated[Path, typer.Argument(metavar="TEST", help=f"Predictions: {DATA_SET}.")],
    out: Annotated[
        Path, typer.Option(help="Where to write: .csv, or for a folder a Parquet data set.")
    ],
    probabilities: Probabilities = False,
    engine: Engine = "local",
    ray_address: RayAddress = None,
    ray_workers: RayWorkers = None,
    any_classifier: AnyClassifier = False,
) -> None:
    """Write a confidence for every prediction."""
    from rightly.deployment.batch_inference import apply

    cluster = make_cluster(engine, ray_address, ray_workers)
    if cluster and not test.is_dir():
        raise ValueError(f"--engine ray is for folders that collect wrote, got {test}")
    with show_steps() as progress:
        rows = apply(
            calibrator,
            test,
            out,
            cluster=cluster,
            progress=progress,
            any_classifier=any_classifier,
            probabilities=probabilities,
        )
    subject = f"the confidences of {test}" if rows is None else f"{rows} confidences"
    print_line(f"{subject} are in {out}")
