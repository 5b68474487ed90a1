"""`rightly card`: a model card."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line
from rightly.cli.inputs import (
    AllowOverlap,
    AnyClassifier,
    LabelFiles,
    OnIfAny,
    Probabilities,
    read_data_sets,
    read_paths,
)
from rightly.files import write_atomically

EXAMPLE = "rightly card model.onnx --calibrator cal.safetensors --on test.npz"


def run(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A .onnx or .pt2 file, a calibrator, or a folder."),
    ],
    on: OnIfAny = None,
    calibrator: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The calibrator of an exported file, for --on."),
    ] = None,
    block: Annotated[
        bool, typer.Option("--block", help="Only the block, without the Hub's header.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write.", show_default="printed")
    ] = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    any_classifier: AnyClassifier = False,
    allow_overlap: AllowOverlap = False,
) -> None:
    """Write a model card: calibration, threshold and cost."""
    from rightly.deployment.model_card import make_card
    from rightly.deployment.runtime import SUFFIXES

    if on and calibrator is None and model.suffix in SUFFIXES:
        raise ValueError(
            f"--on needs --calibrator, because {model} takes images: name the calibrator that it "
            "was exported with"
        )
    paths = read_paths(on or [])
    sets = read_data_sets(list(paths.values()), labels, probabilities)
    text = make_card(
        model,
        dict(zip(paths, sets, strict=True)),
        calibrator,
        block_only=block,
        any_classifier=any_classifier,
        allow_overlap=allow_overlap,
    )
    if out is None:
        print_line(text)
        return
    write_atomically(out, lambda part: part.write_text(text, encoding="utf-8"))
    print_line(f"the card is in {out}")
