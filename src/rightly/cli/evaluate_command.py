"""`rightly evaluate`: every metric, before and after calibration."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import OUT
from rightly.cli.inputs import (
    DATA_SET,
    Adapt,
    AllowOverlap,
    AnyClassifier,
    Batch,
    BootstrapSeed,
    CalibratorFile,
    Intervals,
    Json,
    Resamples,
    make_bootstrap,
)

EXAMPLE = "rightly evaluate calibrator.safetensors test.npz --json values.json"


def run(
    calibrator: CalibratorFile,
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help=f"Test predictions with labels: {DATA_SET}.")
    ],
    intervals: Intervals = True,
    resamples: Resamples = None,
    bootstrap_seed: BootstrapSeed = 0,
    json: Json = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
    adapt: Adapt = False,
    batch: Batch = None,
) -> None:
    """Measure every metric before and after calibration."""
    from rightly.reporting import evaluate
    from rightly.reporting.terminal import render_evaluation, show

    bootstrap = make_bootstrap(intervals, resamples, bootstrap_seed)
    evaluation = evaluate(
        calibrator,
        {test.stem: test},
        bootstrap=bootstrap,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        adapt=adapt,
        batch=batch,
    )
    show(OUT, render_evaluation, evaluation)
    if json:
        evaluation.to_json(json)
