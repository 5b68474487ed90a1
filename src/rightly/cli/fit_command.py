"""`rightly fit`: one calibrator, fitted for use."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import OUT, print_line, show_status
from rightly.cli.inputs import Cal, Views, read_data_set, split_names

if TYPE_CHECKING:
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
    seed: Annotated[int, typer.Option(help="Of a fit that draws at random.")] = 0,
    threshold: Annotated[
        float | None,
        typer.Option(help="Accept predictions at least this confident.", show_default="none"),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accept from the lowest threshold whose accepted samples reach this accuracy.",
            show_default="none",
        ),
    ] = None,
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
    from rightly.fitting import fit
    from rightly.predictions import read_source

    check_name(out)
    predictions, labels = read_data_set(cal, split_names(views))
    options = {"expected_shift": expected_shift, "neighbours": neighbours}
    if method != "auto":
        for name, value in options.items():
            if value is not None and not CALIBRATORS.find(method).takes(name):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} is for --method rightly, got --method {method}")
    else:
        method = _select_method(predictions, labels, expected_shift)
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
            labels,
            threshold=threshold,
            accuracy=accuracy,
            source=read_source(cal),
            budget=budget,
            choose_views=views is None,
            **arguments,
        )
    fitted.save(out)
    samples = int(predictions.unshifted().sum())
    shifted = len(predictions) - samples if fitted.calibrator.uses_shifted_rows else 0
    print_line(
        f"{fitted.title}, fitted on {samples} predictions of {predictions.class_count} classes"
        f"{f' and {shifted} of shift augmentation' if shifted else ''}, is in {out}"
    )
    print_line(f"accuracy on them: {fitted.record['calibration']['accuracy']:.1%}")
    if fitted.fit_note:
        print_line(f"note: {fitted.fit_note}")
    _describe_use(fitted.record, fitted.view_names)


def _select_method(
    predictions: "Predictions", labels: "Labels", expected_shift: float | None
) -> str:
    from rightly.evaluation.method_selection import EXPECTED_SHIFT, select_method
    from rightly.reporting.terminal import render_candidates, show

    with show_status("comparing methods") as update:
        choice = select_method(
            predictions,
            labels,
            expected_shift=EXPECTED_SHIFT if expected_shift is None else expected_shift,
            progress=lambda name: update(f"comparing: {name}"),
        )
    show(OUT, render_candidates, choice)
    print_line(f"{choice.reason}.\n")
    return choice.method


def _describe_use(record: Mapping[str, Any], views: Sequence[str]) -> None:
    """Says when the calibrator accepts, and what its views cost."""
    point = record["threshold"]
    if point is not None:
        text = f"accepts confidence from {point['threshold']:.4f}: "
        if point["accepted"]:
            text += (
                f"{point['coverage']:.1%} of the calibration samples, {point['accuracy']:.2%} "
                f"right (95 % interval {point['accuracy_low']:.2%} to {point['accuracy_high']:.2%})"
            )
        else:
            text += "none of the calibration samples"
        print_line(text)
    if record["passes"] > 1:
        passes = f"{record['passes']:.2f} forward passes per image"
        print_line(f"{passes}, over the views {', '.join(views)}")
