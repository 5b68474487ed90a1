"""`rightly fit`: one calibrator, fitted and saved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import OUT, ExitCode, print_line
from rightly.cli.options import (
    Cal,
    CostError,
    CostGain,
    CostReview,
    Import,
    LabelFiles,
    Probabilities,
    Seed,
    Views,
    check_outputs,
    load_sets,
    option,
    read_costs,
    read_settings,
)

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator

EXAMPLE = "rightly fit cal.npz --out cal.safetensors"
FUNCTIONS = ("rightly.fitting:fit",)


def _list_methods(is_asked: bool) -> bool:
    if not is_asked:
        return is_asked
    from rightly.calibrators import CALIBRATORS
    from rightly.reporting.method_list import render_methods
    from rightly.reporting.terminal import show

    show(OUT, render_methods, CALIBRATORS.values())
    raise typer.Exit()


def run(
    cal: Cal,
    out: Annotated[Path, option("out", metavar="FILE")],
    modules: Import = None,
    names: Annotated[bool, option("list", callback=_list_methods, is_eager=True)] = False,
    method: Annotated[str, typer.Option(metavar="NAME", help="Method, or auto.")] = (
        "correctness_logistic"
    ),
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    seed: Seed = 0,
    threshold: Annotated[
        float | None,
        typer.Option(help="Lowest accepted confidence, set by hand.", show_default="none"),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(help="Guaranteed accuracy of accepted predictions.", show_default="none"),
    ] = None,
    confidence_level: Annotated[
        float, typer.Option(help="Confidence level of the guarantee (1 - delta).")
    ] = 0.95,
    holdout: Annotated[
        float, typer.Option(help="Share of the images held out for threshold and sets.")
    ] = 0.5,
    crossfit: Annotated[
        bool, typer.Option("--crossfit", help="Cross-fit instead of a hold-out; approximate.")
    ] = False,
    cost_error: CostError = None,
    cost_review: CostReview = None,
    cost_gain: CostGain = 0.0,
    coverage: Annotated[
        float | None,
        typer.Option(help="Coverage of the true class by prediction sets.", show_default="none"),
    ] = None,
    set_score: Annotated[
        str, typer.Option(help="Score of prediction sets: lac (smallest), aps or raps.")
    ] = "lac",
    class_conditional: Annotated[
        bool, typer.Option("--class-conditional", help="Coverage within each class.")
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(help="Mean forward passes per image.", show_default="all views"),
    ] = None,
    settings: Annotated[list[str] | None, option("set", metavar="NAME=VALUE")] = None,
) -> int:
    """Fit one calibrator and save it.

    Ends with 3 where the accuracy asked for cannot be guaranteed; the calibrator is saved then
    too, without a threshold.
    """
    from rightly.calibrators.serialization import check_name
    from rightly.evaluation.selection import MethodChoice
    from rightly.fitting import fit
    from rightly.reporting.terminal import render_candidates, show

    check_outputs([out], [cal])
    check_name(out)
    arguments = read_settings(settings)
    costs = read_costs(cost_error, cost_review, cost_gain)
    [(predictions, truth)] = load_sets([cal], labels, probabilities, views)
    fitted = fit(
        predictions,
        truth,
        method,
        threshold=threshold,
        accuracy=accuracy,
        costs=costs,
        confidence_level=confidence_level,
        coverage=coverage,
        set_score=set_score,
        class_conditional=class_conditional,
        holdout=holdout,
        crossfit=crossfit,
        budget=budget,
        select_views=views is None,
        seed=seed,
        progress=True,
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
    if "selection" in fitted.record:
        choice = MethodChoice.from_dict(fitted.record["selection"])
        show(OUT, render_candidates, choice)
        print_line(f"{choice.reason}.")
    for note in (fitted.fit_note, *fitted.record["notes"]):
        if note:
            print_line(f"note: {note}")
    _describe_use(fitted)
    is_missed = fitted.threshold is None and (accuracy is not None or costs is not None)
    return ExitCode.REQUIREMENT_MISSED if is_missed else ExitCode.DONE


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
