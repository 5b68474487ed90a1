"""`rightly evaluate`: every metric, before and after calibration."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ERR, OUT, ExitCode, print_line
from rightly.cli.cost_options import CostError, CostGain, CostReview, read_costs
from rightly.cli.inputs import (
    DATA_SET,
    Adapt,
    AllowOverlap,
    AnyClassifier,
    CalibratorFile,
    Intervals,
    Json,
    LabelFiles,
    Probabilities,
    Resamples,
    Seed,
    parse_adapt,
    read_data_sets,
)

EXAMPLE = "rightly evaluate calibrator.safetensors test.npz --json values.json"


def run(
    calibrator: CalibratorFile,
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help=f"Test predictions with labels: {DATA_SET}.")
    ],
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    intervals: Intervals = True,
    resamples: Resamples = None,
    seed: Seed = 0,
    json: Json = None,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
    adapt: Adapt = None,
    cost_error: CostError = None,
    cost_review: CostReview = None,
    cost_gain: CostGain = 0.0,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="NAME[.low|.high]>=NUMBER",
            help="End with exit code 3 where this is missed; repeatable. NAME: a metric after "
            "calibration, accuracy, coverage, accuracy_accepted or cost.",
        ),
    ] = None,
) -> int:
    """Measure every metric before and after calibration."""
    from rightly.evaluation.evaluate import evaluate
    from rightly.reporting.terminal import render_evaluation, show

    [data] = read_data_sets([test], labels, probabilities)
    evaluation = evaluate(
        calibrator,
        {test.stem: data},
        intervals=intervals,
        resamples=resamples,
        seed=seed,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
        adapt=parse_adapt(adapt),
        costs=read_costs(cost_error, cost_review, cost_gain),
        require=require or (),
    )
    show(OUT, render_evaluation, evaluation)
    if json:
        evaluation.to_json(json)
    for text in evaluation.missed:
        print_line(f"missed: {text}", ERR, style="red")
    return ExitCode.REQUIREMENT_MISSED if evaluation.missed else ExitCode.DONE
