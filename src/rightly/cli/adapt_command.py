"""`rightly adapt`: a calibrator at the level that unlabelled predictions show."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import DATA_SET, AnyClassifier, CalibratorFile, Probabilities

EXAMPLE = "rightly adapt cal.safetensors today.npz --out adapted.safetensors"


def run(
    calibrator: CalibratorFile,
    unlabelled: Annotated[
        Path,
        typer.Argument(metavar="UNLABELLED", help=f"Predictions, labels not needed: {DATA_SET}."),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the adapted calibrator.")],
    probabilities: Probabilities = False,
    any_classifier: AnyClassifier = False,
) -> None:
    """Adapt a calibrator to predictions without labels.

    Confidence moves to the level that these show; the predicted class and the ranking within them
    stay. Not for images the classifier was never meant for: see the documentation.
    """
    from rightly.calibrators import load_calibrator
    from rightly.calibrators.serialization import check_name
    from rightly.calibrators.shift_adaptation import ShiftError
    from rightly.evaluation.leakage import CalibrationData, check_same_classifier
    from rightly.files import check_target
    from rightly.predictions import load

    check_target(out, [calibrator, unlabelled])
    check_name(out)
    with show_status("adapting"):
        fitted = load_calibrator(calibrator)
        predictions, _ = load(unlabelled, probabilities=probabilities)
        if not any_classifier:
            known = CalibrationData.of_calibrator(fitted)
            check_same_classifier("unlabelled", known, predictions.fingerprint)
        predictions = fitted.select_views(predictions)
        adapted = fitted.adapt(predictions)
        confidence = [float(one.confidence(predictions).mean()) for one in (fitted, adapted)]
        adapted.save(out)
    print_line(
        f"shift estimate of {len(predictions)} samples: "
        f"{adapted.record['adapted']['shift_estimate']:+.3f}"
    )
    print_line(f"mean confidence: {confidence[0]:.4f} before, {confidence[1]:.4f} after")
    try:
        value, low, high = fitted.expected_accuracy(predictions)
        print_line(f"expected accuracy: {value:.4f}, range {low:.4f} to {high:.4f} (90 %)")
    except ShiftError as error:
        print_line(f"expected accuracy: none, because {error}")
    print_line(f"the adapted calibrator is in {out}")
