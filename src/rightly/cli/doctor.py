"""`rightly doctor`: checks of stored predictions and labels."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import ExitCode, print_line, write_json
from rightly.cli.options import (
    DATA_SET,
    Import,
    Json,
    LabelFiles,
    Probabilities,
    assign_labels,
    check_outputs,
    read_paths,
)
from rightly.progress import track

EXAMPLE = "rightly doctor cal.npz test.npz --expected-accuracy 0.9"
FUNCTIONS = ("rightly.evaluation.examination.examining:examine",)
STYLES = {"error": "red", "warning": "yellow"}


def run(
    cal: Annotated[Path, typer.Argument(metavar="CAL", help=f"Calibration data: {DATA_SET}.")],
    tests: Annotated[
        list[str] | None,
        typer.Argument(metavar="[[NAME=]TEST]...", help=f"Test sets: {DATA_SET}."),
    ] = None,
    modules: Import = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    expected_accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accuracy of the classifier on images like those of CAL.", show_default="any"
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Check predictions and labels for common mistakes.

    Ends with 5 where something was found, each with its evidence and a remedy. Changes nothing.
    """
    from rightly.evaluation.examination.examining import examine

    paths = read_paths(tests or ())
    if cal.stem in paths:
        raise ValueError(f"tests need another name than CAL, got {cal.stem} twice: NAME=TEST")
    check_outputs([json], [cal, *paths.values()])
    sets = {cal.stem: cal, **paths}
    files = assign_labels(labels, list(sets.values()))
    with track(True, "examining"):
        findings = examine(
            cal,
            paths,
            expected_accuracy=expected_accuracy,
            name=cal.stem,
            labels={name: files[path] for name, path in sets.items() if path in files},
            probabilities=probabilities,
        )
    for finding in findings:
        print_line(
            f"{finding.data_set}: {finding.severity}, {finding.name}",
            style=STYLES[finding.severity],
        )
        print_line(f"  found: {finding.found}")
        print_line(f"  remedy: {finding.remedy}")
    examined = ", ".join([cal.stem, *paths])
    count = len(findings)
    kinds = f"{count} finding{'' if count == 1 else 's'}" if count else "nothing found"
    print_line(f"{kinds} in {examined}")
    if json:
        content = {
            "data_sets": [cal.stem, *paths],
            "expected_accuracy": expected_accuracy,
            "findings": [finding.to_dict() for finding in findings],
        }
        write_json(json, "rightly-findings", content)
    return ExitCode.DOCTOR_FOUND if findings else ExitCode.DONE
