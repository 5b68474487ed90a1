"""`rightly export`: classifier, views and calibrator in one file."""

from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.class_names import ClassNames, read_class_names
from rightly.cli.collect_command import MODEL
from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import Interpolation, Mean, Resize, Size, Std, make_preprocessing

EXAMPLE = "rightly export --graft n.onnx --calibrator c.safetensors --out m.onnx"


def run(
    calibrator: Annotated[
        Path, typer.Option(metavar="FILE", help="A saved calibrator (.safetensors).")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write: .onnx or .pt2.")],
    model: Annotated[str | None, typer.Option(metavar="SPEC", help=MODEL)] = None,
    graft: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An ONNX classifier made elsewhere.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Images on which file and torch must agree.",
            show_default="synthetic ones",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many of them.")] = 16,
    output: Annotated[
        str | None, typer.Option(help="Which of several outputs holds the logits.")
    ] = None,
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
) -> None:
    """Write classifier, views and calibrator as one file."""
    from rightly.deployment.export import export_model

    if (model is None) == (graft is None):
        raise ValueError("one of --model SPEC and --graft FILE must be given")
    if samples < 1:
        raise ValueError(f"--samples must be at least 1, got {samples}")
    spec = model or f"onnx:{graft}"
    preprocessing = None
    if resize or mean or std:
        preprocessing = make_preprocessing(size, resize, interpolation, mean, std)
    with show_status(f"exporting {spec}"):
        metadata = export_model(
            spec,
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
        f"{spec} with {metadata['method']} is in {out} ({out.stat().st_size / 1e6:.1f} MB)\n"
        f"on {parity['images']} {parity['kind']} images its confidence differs from torch's by at "
        f"most {parity['confidence']:.1e}"
    )
