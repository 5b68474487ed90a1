"""`rightly export`: classifier, views and calibrator in one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.collect_command import MODEL
from rightly.cli.console import print_line, show_status
from rightly.cli.inputs import Interpolation, Mean, Resize, Size, Std, make_preprocessing

if TYPE_CHECKING:
    from rightly.classifiers import Preprocessing

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
            help="Pictures on which file and torch must agree.",
            show_default="made-up ones",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many of them.")] = 16,
    output: Annotated[
        str | None, typer.Option(help="Which of several outputs holds the logits.")
    ] = None,
    size: Size = None,
    resize: Resize = None,
    interpolation: Interpolation = "bilinear",
    mean: Mean = None,
    std: Std = None,
) -> None:
    """Write classifier, views and calibrator as one file."""
    from rightly.calibrators import load_calibrator
    from rightly.deployment import CalibratedClassifier, export

    if (model is None) == (graft is None):
        raise ValueError("one of --model SPEC and --graft FILE must be given")
    if samples < 1:
        raise ValueError(f"--samples must be at least 1, got {samples}")
    fitted = load_calibrator(calibrator)
    spec = model or f"onnx:{graft}"
    side = (size, size) if size else None
    preprocessing = None
    if resize or mean or std or not _knows_all_but_size(fitted):
        preprocessing = make_preprocessing(size, resize, interpolation, mean, std)
    classifier = CalibratedClassifier(
        spec, fitted, preprocessing=preprocessing, output=output, device="cpu"
    )
    pictures = [] if images is None else _read_pictures(images, samples)
    with show_status(f"exporting {spec} with {fitted.title}"):
        identity = export(classifier, out, pictures, side)
    parity = identity["parity"]
    print_line(
        f"{spec} with {fitted.title} is in {out} ({out.stat().st_size / 1e6:.1f} MB)\n"
        f"on {parity['images']} {parity['kind']} images its confidence differs from torch's by at "
        f"most {parity['confidence']:.1e}"
    )


def _knows_all_but_size(fitted: Any) -> bool:
    """Whether the calibrator's record holds a preprocessing that takes images of any size."""
    from rightly.deployment.metadata import expected_preprocessing

    expected: Preprocessing | None = expected_preprocessing(fitted)
    return expected is not None and expected.size is None


def _read_pictures(folder: Path, count: int) -> list[Any]:
    from rightly.cli.predict_command import list_pictures
    from rightly.datasets.decoding import ImageFiles

    files = list_pictures(folder)
    subset = files[:: max(1, len(files) // count)][:count]
    return [ImageFiles(file.parent, [file.name])(0) for file in subset]
