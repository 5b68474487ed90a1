"""`rightly fit`: one calibrator, fitted for use."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import OUT, print_line, show_status, show_steps
from rightly.cli.cost_options import CostError, CostGain, CostReview, read_costs
from rightly.cli.inputs import Cal, LabelFiles, Probabilities, Views, read_data_sets

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.predictions import Predictions
    from rightly.tensor_shapes import Labels

EXAMPLE = "rightly fit cal.npz --out cal.safetensors"


def run(
    cal: Cal,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write (.safetensors).")],
    method: Annotated[
        str, typer.Option(help="A name (rightly methods lists them), or auto.")
    ] = "rightly",
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    seed: Annotated[int, typer.Option(help="Of a fit that draws at random.")] = 0,
    threshold: Annotated[
        float | None,
        typer.Option(help="Accept predictions at least this confident.", show_default="none"),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accept from the lowest threshold that guarantees this accuracy.",
            show_default="none",
        ),
    ] = None,
    confidence_level: Annotated[
        float, typer.Option(help="Confidence level of the guarantee (1 - delta).")
    ] = 0.95,
    holdout: Annotated[
        float, typer.Option(help="Share of the images held out of the fit, for threshold and sets.")
    ] = 0.5,
    crossfit: Annotated[
        bool, typer.Option("--crossfit", help="Cross-fit instead of a hold-out; approximate.")
    ] = False,
    cost_error: CostError = None,
    cost_review: CostReview = None,
    cost_gain: CostGain = 0.0,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Make prediction sets that hold the true class of so many images.",
            show_default="none",
        ),
    ] = None,
    set_score: Annotated[
        str, typer.Option(help="Of prediction sets: lac (smallest), aps or raps (more even).")
    ] = "lac",
    class_conditional: Annotated[
        bool, typer.Option("--class-conditional", help="Let --coverage hold in each class.")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Mean forward passes per image: views are run only where they pay.",
            show_default="all views",
        ),
    ] = None,
    expected_shift: Annotated[
        float | None,
        typer.Option(
            help="How much shift to expect, 0 to 1 (for rightly and auto).", show_default="0.5"
        ),
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="Calibration samples whose features are kept, for distances (for rightly).",
            show_default="none",
        ),
    ] = None,
) -> None:
    """Fit one calibrator and save it."""
    from rightly.calibrators import CALIBRATORS
    from rightly.calibrators.serialization import check_name
    from rightly.checks import check_fraction
    from rightly.fitting import fit
    from rightly.predictions import check_labels
    from rightly.predictions.rows import holdout_mask

    check_name(out)
    [(predictions, truth)] = read_data_sets([cal], labels, probabilities, views)
    options = {"expected_shift": expected_shift, "neighbours": neighbours}
    if method != "auto":
        for name, value in options.items():
            if value is not None and not CALIBRATORS.find(method).takes(name):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} is for --method rightly, got --method {method}")
    costs = read_costs(cost_error, cost_review, cost_gain)
    if method == "auto":
        truth = check_labels(truth, predictions)
        seen = predictions, truth
        if not crossfit and any(x is not None for x in (accuracy, costs, coverage)):
            # The labels that the threshold is found on have no say in anything else.
            check_fraction("holdout", holdout)
            rows = ~holdout_mask(predictions, holdout)
            seen = predictions[rows], truth[rows]
        method = _select_method(*seen, expected_shift)
    options["seed"] = seed
    arguments: dict[str, Any] = {
        name: value
        for name, value in options.items()
        if value is not None and CALIBRATORS.find(method).takes(name)
    }
    with show_status(f"fitting {method} on {len(predictions)} predictions"):
        fitted = fit(
            method,
            predictions,
            truth,
            threshold=threshold,
            accuracy=accuracy,
            confidence_level=confidence_level,
            holdout=holdout,
            crossfit=crossfit,
            costs=costs,
            coverage=coverage,
            set_score=set_score,
            class_conditional=class_conditional,
            budget=budget,
            choose_views=views is None,
            **arguments,
        )
    fitted.save(out)
    calibration = fitted.record["calibration"]
    samples, shifted = calibration["samples"], calibration["shifted_samples"]
    print_line(
        f"{fitted.title}, fitted on {samples} predictions of {predictions.class_count} classes"
        f"{f' and {shifted} of shift augmentation' if shifted else ''}, is in {out}"
    )
    print_line(f"accuracy on them: {calibration['accuracy']:.1%}")
    if fitted.fit_note:
        print_line(f"note: {fitted.fit_note}")
    _describe_use(fitted)


def _select_method(
    predictions: "Predictions", labels: "Labels", expected_shift: float | None
) -> str:
    from rightly.evaluation.selection import EXPECTED_SHIFT, select_method
    from rightly.reporting.terminal import render_candidates, show

    with show_steps() as progress:
        choice = select_method(
            predictions,
            labels,
            expected_shift=EXPECTED_SHIFT if expected_shift is None else expected_shift,
            progress=progress,
        )
    show(OUT, render_candidates, choice)
    print_line(f"{choice.reason}.\n")
    return choice.method


def _describe_use(fitted: "Calibrator") -> None:
    """Says what the views cost, and what the calibrator accepts; the decision comes last."""
    from rightly.decisions.decision import HOLDS_FOR, describe_set_guarantee

    if fitted.record["passes"] > 1:
        passes = f"{fitted.record['passes']:.2f} forward passes per image"
        print_line(f"{passes}, over the views {', '.join(fitted.view_names)}")
    if fitted.sets is not None:
        print_line(f"{describe_set_guarantee(fitted.sets.describe(), fitted.sets.class_count)}.")
        print_line(f"sets of these images have {fitted.sets.mean_size:.2f} classes on average")
    decision = fitted.decision
    if decision is None:
        return
    if decision.threshold is not None:
        text = f"accepts confidence from {decision.threshold:.4f}: "
        if decision.accuracy is not None and decision.accuracy_interval is not None:
            low, high = decision.accuracy_interval
            text += (
                f"{decision.coverage:.1%} of {decision.n} {decision.measured_on}, "
                f"{decision.accuracy:.2%} correct (95 % interval {low:.2%} to {high:.2%})"
            )
        else:
            text += "none of the calibration samples"
        print_line(text)
    if decision.is_guaranteed:
        print_line(f"the guarantee {HOLDS_FOR}")
    if decision.kind != "manual":
        print_line(decision.describe())
