"""`rightly adapt`: a calibrator adapted to other data, with or without labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rightly.cli.console import print_line
from rightly.cli.options import (
    DATA_SET,
    AnyClassifier,
    CalibratorFile,
    Import,
    LabelFiles,
    Probabilities,
    check_outputs,
    load_sets,
    option,
)
from rightly.progress import track

if TYPE_CHECKING:
    from rightly.calibrators import Calibrator
    from rightly.predictions import Predictions

EXAMPLE = "rightly adapt cal.safetensors today.npz --out adapted.safetensors"
FUNCTIONS = ("rightly.calibrators:Calibrator.adapt",)


def run(
    calibrator: CalibratorFile,
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help=f"Predictions from where it is used: {DATA_SET}."),
    ],
    out: Annotated[Path, option("out", metavar="FILE")],
    modules: Import = None,
    labels: LabelFiles = None,
    use_labels: Annotated[bool, option("use-labels")] = False,
    probabilities: Probabilities = False,
    any_classifier: AnyClassifier = False,
) -> None:
    """Adapt a calibrator to other data.

    Without labels, confidence moves to the level that the data show: not for images the
    classifier was never meant for, see the documentation. With --use-labels, few are enough:
    intercept and slope are corrected, and the decision and prediction sets are dropped.
    Predicted class and ranking stay.
    """
    from rightly.calibrators import load_calibrator
    from rightly.calibrators.serialization import check_name
    from rightly.evaluation.leakage import CalibrationData, check_same_classifier

    check_outputs([out], [calibrator, data])
    check_name(out)
    with track(True, "adapting"):
        fitted = load_calibrator(calibrator)
        [(predictions, truth)] = load_sets([data], labels, probabilities)
        if not any_classifier:
            known = CalibrationData.of_calibrator(fitted)
            check_same_classifier("data", known, predictions.fingerprint)
        predictions = fitted.select_views(predictions)
        if use_labels:
            if truth is None:
                raise ValueError(f"{data} must hold labels, or come with --labels FILE")
            adapted = fitted.adapt(predictions, truth)
            predictions = predictions[predictions.unshifted()]
        else:
            adapted = fitted.adapt(predictions)
        means = [float(one.confidence(predictions).mean()) for one in (fitted, adapted)]
        adapted.save(out)
    record = adapted.record["adapted"]
    if use_labels:
        print_line(f"accuracy on {record['samples']} labelled samples: {record['accuracy']:.4f}")
        print_line(f"log-odds of confidence: {record['intercept']:+.3f} {record['slope']:+.3f} s")
    else:
        print_line(f"shift estimate of {len(predictions)} samples: {record['shift_estimate']:+.3f}")
    print_line(f"mean confidence: {means[0]:.4f} before, {means[1]:.4f} after")
    if not use_labels:
        _print_expected_accuracy(fitted, predictions)
    print_line(f"the adapted calibrator is in {out}")


def _print_expected_accuracy(fitted: "Calibrator", predictions: "Predictions") -> None:
    from rightly.calibrators.shift_adaptation import ShiftError

    try:
        value, low, high = fitted.expected_accuracy(predictions)
        print_line(f"expected accuracy: {value:.4f}, range {low:.4f} to {high:.4f} (90 %)")
    except ShiftError as error:
        print_line(f"expected accuracy: none, because {error}")
