"""`rightly recalibrate`: a calibrator corrected by a few labels from where it is used."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import (
    DATA_SET,
    AnyClassifier,
    CalibratorFile,
    LabelFiles,
    Probabilities,
    read_data_sets,
)

EXAMPLE = "rightly recalibrate cal.safetensors new.npz --out new.safetensors"


def run(
    calibrator: CalibratorFile,
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help=f"New predictions with labels: {DATA_SET}.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the recalibrated calibrator.")],
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    any_classifier: AnyClassifier = False,
) -> None:
    """Correct level and slope of a calibrator by a few new labels.

    The fewer there are, the less changes. The predicted class and the ranking stay; a decision
    and prediction sets were made for the old data, and are dropped.
    """
    from rightly.calibrators import load_calibrator
    from rightly.calibrators.serialization import check_name
    from rightly.evaluation.leakage import CalibrationData, check_same_classifier
    from rightly.files import check_target

    check_name(out)
    check_target(out, [calibrator, new])
    with show_status("recalibrating"):
        fitted = load_calibrator(calibrator)
        [(predictions, truth)] = read_data_sets([new], labels, probabilities)
        if not any_classifier:
            known = CalibrationData.of_calibrator(fitted)
            check_same_classifier("new", known, predictions.fingerprint)
        predictions = fitted.select_views(predictions)
        if truth is None:
            raise ValueError(f"{new} must hold labels, or come with --labels FILE")
        recalibrated = fitted.adapt(predictions, truth)
        recalibrated.save(out)
    record, rows = recalibrated.record["adapted"], predictions[predictions.unshifted()]
    means = [float(one.confidence(rows).mean()) for one in (fitted, recalibrated)]
    print_line(f"accuracy on {record['samples']} new samples: {record['accuracy']:.4f}")
    print_line(f"mean confidence: {means[0]:.4f} before, {means[1]:.4f} after")
    print_line(f"log-odds of confidence: {record['intercept']:+.3f} {record['slope']:+.3f} s")
    print_line(f"the recalibrated calibrator is in {out}")
