"""Writing a calibrated classifier to one file, and checking that the file says the same."""

import json
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from rightly.atomic_write import write_atomically
from rightly.deployment import onnx_graph
from rightly.deployment.calibrated_classifier import CalibratedClassifier
from rightly.deployment.outputs import Verdicts
from rightly.deployment.runtime import KEY, PROGRAM_NOTE, Deployed, DeployedGraph, DeployedProgram
from rightly.transforms.image_tensors import draw_uniforms
from rightly.transforms.views import blur

SAMPLES = 8
BATCH = 16  # pictures compared at a time
TOLERANCE = 1e-4  # in confidence; beyond it something is wrong, not merely rounded
LARGEST = 2**31 - 1  # bytes that one ONNX file can hold


def export(
    model: CalibratedClassifier,
    path: str | os.PathLike[str],
    pictures: Sequence[Any] = (),
    size: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Writes a .onnx or .pt2 file and returns what it says about itself.

    File and torch are compared on the pictures, or on made-up ones, and the file is only written
    if they agree. `size` is that of the images, where the classifier takes any.
    """
    path = Path(path)
    if path.suffix not in (".onnx", ".pt2"):
        raise ValueError(f"out must end in .onnx or .pt2, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    shown = _shown(model, pictures, size)
    identity = model.identity
    identity["preprocessing"] |= {"size": list(shown.shape[1:3])}
    example = torch.from_numpy(shown).permute(0, 3, 1, 2)[:2].float() / 255
    if len(example) < 2:
        example = example.repeat(2, 1, 1, 1)
    device = model.device
    model.cpu()
    try:
        if path.suffix == ".onnx":
            return _write_onnx(path, model, example, identity, shown, bool(pictures))
        return _write_program(path, model, example, identity, shown, bool(pictures))
    finally:
        model.to(device)


def _write_onnx(
    path: Path,
    model: CalibratedClassifier,
    example: Tensor,
    identity: dict[str, Any],
    shown: np.ndarray,
    real: bool,
) -> dict[str, Any]:
    graph = onnx_graph.joined(model, example)
    note = graph.metadata_props.add()
    note.key, note.value = KEY, json.dumps(identity)
    if graph.ByteSize() > LARGEST:
        raise ValueError(
            f"the model has {graph.ByteSize() / 2**30:.1f} GiB, but one ONNX file holds 2: "
            "export to .pt2"
        )
    found = DeployedGraph(graph.SerializeToString())
    identity["parity"] = parity(model, found, shown, real)
    note.value = json.dumps(identity)
    data = graph.SerializeToString()
    write_atomically(path, lambda part: part.write_bytes(data))
    return identity


def _write_program(
    path: Path,
    model: CalibratedClassifier,
    example: Tensor,
    identity: dict[str, Any],
    shown: np.ndarray,
    real: bool,
) -> dict[str, Any]:
    if model.network is None:
        raise ValueError(
            f"{model.opened.name} must be a torch module to become a .pt2 file: export to .onnx"
        )
    named = onnx_graph.output_names(model.head)
    with torch.no_grad(), onnx_graph.quietly():
        try:
            dims = ({0: torch.export.Dim("n")},)
            program = torch.export.export(_Named(model, named), (example,), dynamic_shapes=dims)
        except Exception as error:  # the tracer's own classes, which have no common base
            raise ValueError(
                f"{model.opened.name} cannot be traced: {onnx_graph.root_of(error)}"
            ) from error

    # Beside its place under its own name: torch wants the suffix of the file it writes.
    with onnx_graph.quietly(), TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        torch.export.save(program, made, extra_files={PROGRAM_NOTE: json.dumps(identity)})
        identity["parity"] = parity(model, DeployedProgram(made), shown, real)
        torch.export.save(program, made, extra_files={PROGRAM_NOTE: json.dumps(identity)})
        made.replace(path)
    return identity


@final
class _Named(nn.Module):
    """All that is said about images, by name."""

    def __init__(self, model: CalibratedClassifier, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, list(names)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        said = onnx_graph.present(self.model.look(images)[1])
        return dict(zip(self.names, said, strict=True))


def parity(
    model: CalibratedClassifier, found: Deployed, shown: np.ndarray, real: bool
) -> dict[str, Any]:
    """The largest differences between a file and torch; refused where they are too large."""
    parts = [shown[start : start + BATCH] for start in range(0, len(shown), BATCH)]
    ours = _joined([model.predict(torch.from_numpy(part).permute(0, 3, 1, 2)) for part in parts])
    theirs = _joined([found.predict(part) for part in parts])
    apart = {
        name: float(np.abs(getattr(ours, name) - getattr(theirs, name)).max())
        for name in ("confidence", "probabilities")
    }
    apart["log_temperature"] = float(
        np.abs(np.log(ours.temperature) - np.log(theirs.temperature)).max()
    )
    # Where two classes are as likely to the last digits, rounding decides between them.
    found_there = np.asarray(theirs.probabilities)
    likely = found_there[np.arange(len(shown)), np.asarray(ours.classes)]
    different = int(np.sum(found_there.max(-1) - likely > TOLERANCE))
    accepted = 0
    if ours.accept is not None and theirs.accept is not None:
        accepted = int(np.sum(ours.accept != theirs.accept))
    if different or not apart["confidence"] <= TOLERANCE:
        raise ValueError(
            f"the file must say what torch says, but on {len(shown)} images confidence differs by "
            f"{apart['confidence']:.2g} and {different} classes are others: nothing was written"
        )
    return {
        "images": len(shown),
        "kind": "real" if real else "made-up",
        **apart,
        "accept_differs": accepted,
    }


def _joined(parts: Sequence[Verdicts]) -> Verdicts:
    """Verdicts about several batches as one, as arrays."""
    arrays = [part.numpy() for part in parts]
    joined: dict[str, Any] = {}
    for field in fields(Verdicts):
        values = [getattr(part, field.name) for part in arrays]
        joined[field.name] = None if values[0] is None else np.concatenate(values)
    return Verdicts(**joined)


def _shown(
    model: CalibratedClassifier, pictures: Sequence[Any], size: tuple[int, int] | None
) -> np.ndarray:
    """Bytes of pictures at the classifier's size: those given, else made-up ones."""
    own = model.preprocessing.size
    if own is not None and size is not None and size != own:
        raise ValueError(f"size must be {own}, which the classifier takes, got {size}")
    if pictures:
        images = model.images_of(list(pictures)).cpu()
        found = tuple(images.shape[2:])
        if size is not None and found != size:
            raise ValueError(f"size must be that of the pictures, {found}, got {size}")
        return (images * 255).round().byte().permute(0, 2, 3, 1).contiguous().numpy()
    size = own or size
    if size is None:
        raise ValueError(
            f"{model.opened.name} does not say what size of images it takes: give --size, or "
            "pictures to compare on"
        )
    return made_up(SAMPLES, size)


def made_up(count: int, size: tuple[int, int]) -> np.ndarray:
    """Pictures of coloured blobs, the same every time: (count, h, w, 3) bytes."""
    height, width = size
    seeds = torch.arange(count)[:, None, None, None].expand(-1, 3, 4, 4) / max(count, 1)
    coarse = draw_uniforms(seeds.float(), 3 * 64, 7).reshape(count, 3, 8, 8)
    blobs = nn.functional.interpolate(coarse, size=(height, width), mode="bicubic").clamp(0, 1)
    return (blur(blobs) * 255).round().byte().permute(0, 2, 3, 1).contiguous().numpy()
