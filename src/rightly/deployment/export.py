"""Writing a calibrated classifier to one file, and checking that the file computes the same."""

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from rightly.calibrators import Calibrator, check_calibrator, load_calibrator
from rightly.classifiers import Preprocessing
from rightly.deployment.calibrated_classifier import AnyClassifier, CalibratedClassifier
from rightly.deployment.conformance import INPUT, SHIFT_ESTIMATE
from rightly.deployment.metadata import ONNX_KEY, PROGRAM_FILE
from rightly.deployment.onnx_graph import build_graph
from rightly.deployment.onnx_tracing import find_root_cause, silence_tracer
from rightly.deployment.parity import (
    Pixels,
    check_parity,
    make_comparison_images,
    read_samples,
)
from rightly.deployment.provenance import expected_preprocessing
from rightly.deployment.runtime import SUFFIXES, OnnxModel
from rightly.deployment.torch_runtime import TorchProgram
from rightly.files import check_target, encode_json, write_atomically

MAX_ONNX_BYTES = 2**31 - 1  # that one ONNX file can hold


def export_model(
    classifier: AnyClassifier,
    calibrator: str | os.PathLike[str] | Calibrator,
    out: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | Sequence[Any] = (),
    samples: int = 16,
    preprocessing: Preprocessing | None = None,
    size: tuple[int, int] | None = None,
    output: str | int | None = None,
    adaptable: bool = True,
    class_names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Writes a classifier with its calibrator, or a path of one, to a .onnx or .pt2 file.

    File and torch must agree on `images`: a list, or a folder of which `samples` are taken; on
    synthetic ones where there are none. `size` is that of the images, where neither the classifier
    nor what the calibrator was fitted on says it. If the calibrator can be adapted, the file has
    the optional input `shift_estimate`, unless `adaptable` is False. `class_names` are for a
    calibrator that was fitted without. Returns the metadata of the file.
    """
    name = classifier.removeprefix("onnx:") if isinstance(classifier, str) else classifier
    check_target(out, [calibrator, name])
    fitted = (
        load_calibrator(calibrator)
        if isinstance(calibrator, str | os.PathLike)
        else check_calibrator(calibrator)
    )
    if preprocessing is None and size is not None and expected_preprocessing(fitted) is None:
        preprocessing = Preprocessing(size=size)
    model = CalibratedClassifier(
        classifier,
        fitted,
        preprocessing=preprocessing,
        output=output,
        device="cpu",
        adaptable=adaptable,
        class_names=class_names,
    )
    if isinstance(images, str | os.PathLike):
        images = read_samples(Path(images), samples)
    return export_classifier(model, out, images, size)


def export_classifier(
    model: CalibratedClassifier,
    out: str | os.PathLike[str],
    images: Sequence[Any] = (),
    size: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Writes a .onnx or .pt2 file and returns its metadata.

    File and torch are compared on the images, or on synthetic ones, and the file is only written
    if they agree. `size` is that of the images, where the classifier takes any.
    """
    path = Path(out)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"out must end in {' or '.join(SUFFIXES)}, got {path}")
    check_target(path)
    pixels = make_comparison_images(model, images, size)
    metadata = model.metadata
    metadata["preprocessing"] |= {"size": list(pixels.shape[1:3])}
    metadata["parity"] = {"images": len(pixels), "kind": "real" if images else "synthetic"}
    example = torch.from_numpy(pixels).permute(0, 3, 1, 2)[:2].float() / 255
    if len(example) < 2:
        example = example.repeat(2, 1, 1, 1)
    device = model.device
    model.cpu()
    try:
        model.predict(example)  # what does not fit together is refused before anything is traced
        write = _write_onnx if path.suffix == ".onnx" else _write_program
        write(path, model, example, metadata, pixels)
    finally:
        model.to(device)
    return metadata


def _write_onnx(
    path: Path,
    model: CalibratedClassifier,
    example: Tensor,
    metadata: dict[str, Any],
    pixels: Pixels,
) -> None:
    graph = build_graph(model, example)
    entry = graph.metadata_props.add()
    entry.key, entry.value = ONNX_KEY, encode_json(metadata)
    if graph.ByteSize() > MAX_ONNX_BYTES:
        raise ValueError(
            f"the model has {graph.ByteSize() / 2**30:.1f} GiB, but one ONNX file holds 2: "
            "export to .pt2"
        )
    metadata["parity"] |= check_parity(model, OnnxModel(graph.SerializeToString()), pixels)
    entry.value = encode_json(metadata)
    data = graph.SerializeToString()
    write_atomically(path, lambda part: part.write_bytes(data))


def _write_program(
    path: Path,
    model: CalibratedClassifier,
    example: Tensor,
    metadata: dict[str, Any],
    pixels: Pixels,
) -> None:
    if model.network is None:
        raise ValueError(
            f"{model.classifier.name} must be a torch module to become a .pt2 file: export to .onnx"
        )
    with torch.no_grad(), silence_tracer():
        try:
            shapes: dict[str, Any] = {INPUT: {0: torch.export.Dim("n")}}
            scalars = {} if model.shift_adaptation is None else {SHIFT_ESTIMATE: torch.tensor(-0.5)}
            program = torch.export.export(
                _NamedOutputs(model),
                (example,),
                scalars,
                dynamic_shapes=shapes | dict.fromkeys(scalars, {}),
            )
        except Exception as error:  # the tracer's own classes, which have no common base
            raise ValueError(
                f"{model.classifier.name} cannot be traced: {find_root_cause(error)}"
            ) from error

    first = TorchProgram(_encode_program(program, metadata))
    metadata["parity"] |= check_parity(model, first, pixels)
    data = _encode_program(program, metadata)
    write_atomically(path, lambda part: part.write_bytes(data))


def _encode_program(program: torch.export.ExportedProgram, metadata: dict[str, Any]) -> bytes:
    # Into memory: torch's own writer of files ends the process where the disk is full.
    file = BytesIO()
    with silence_tracer():
        torch.export.save(program, file, extra_files={PROGRAM_FILE: encode_json(metadata)})
    return file.getvalue()


@final
class _NamedOutputs(nn.Module):
    """The outputs for images, by name."""

    def __init__(self, model: CalibratedClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, shift_estimate: Tensor | None = None) -> dict[str, Tensor]:
        return self.model.compute_outputs(images, shift_estimate)[1].to_dict()
