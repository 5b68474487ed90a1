"""`rightly export`: classifier, views and calibrator in one file."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import print_line
from rightly.cli.options import (
    CalibratorFile,
    Card,
    ClassNames,
    Import,
    Interpolation,
    Mean,
    Model,
    Output,
    Resize,
    Size,
    Std,
    check_outputs,
    make_preprocessing,
    option,
    read_class_names,
)
from rightly.progress import track

EXAMPLE = "rightly export onnx:net.onnx cal.safetensors --out model.onnx"
FUNCTIONS = ("rightly.deployment.export:export_model",)


def run(
    model: Model,
    calibrator: CalibratorFile,
    out: Annotated[Path, option("out", metavar="FILE")],
    modules: Import = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Images on which file and torch must agree.",
            show_default="synthetic ones",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of these images.")] = 16,
    output: Output = None,
    adaptable: Annotated[
        bool,
        typer.Option(help="Optional input shift_estimate; not every runtime has such inputs."),
    ] = True,
    class_names: ClassNames = None,
    size: Size = None,
    resize: Resize = None,
    interpolation: Interpolation = "bilinear",
    mean: Mean = None,
    std: Std = None,
    card: Card = None,
) -> None:
    """Write classifier, views and calibrator as one file.

    The file ends in .onnx or .pt2; onnx:FILE is an ONNX classifier made elsewhere.
    """
    from rightly.deployment.export import export_model

    check_outputs([out, card], [calibrator, model.removeprefix("onnx:")])
    preprocessing = None
    if resize or mean or std:
        preprocessing = make_preprocessing(size, resize, interpolation, mean, std)
    with track(True, f"exporting {model}"):
        metadata = export_model(
            model,
            calibrator,
            out,
            images=images or (),
            samples=samples,
            preprocessing=preprocessing,
            size=(size, size) if size else None,
            output=output,
            adaptable=adaptable,
            class_names=read_class_names(class_names),
        )
    parity = metadata["parity"]
    print_line(
        f"{model} with {metadata['method']} is in {out} ({out.stat().st_size / 1e6:.1f} MB)\n"
        f"on {parity['images']} {parity['kind']} images its confidence differs from torch's by at "
        f"most {parity['confidence']:.1e}"
    )
    if card:
        from rightly.deployment.model_card import make_card
        from rightly.files import write_atomically

        text = make_card(out)
        write_atomically(card, lambda part: part.write_text(text, encoding="utf-8"))
        print_line(f"the model card is in {card}")
