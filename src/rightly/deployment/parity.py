"""Whether an exported file computes what torch does, and the images to compare on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from rightly.datasets.class_folders import list_images
from rightly.datasets.decoding import ImageFiles
from rightly.deployment.calibrated_classifier import CalibratedClassifier
from rightly.deployment.inputs import make_batch
from rightly.deployment.outputs import Outputs, concatenate
from rightly.deployment.runtime import ExportedModel
from rightly.transforms.image_tensors import draw_uniforms
from rightly.transforms.views.detail import blur

SYNTHETIC_IMAGES = 8
BATCH = 16  # images compared at a time
TOLERANCE = 1e-4  # in confidence; beyond it something is wrong, not merely rounded
MAX_SETS_DIFFER = 0.02  # of the classes, whose scores rounding may move over a threshold

Pixels = UInt8[np.ndarray, "n h w 3"]


def check_parity(
    model: CalibratedClassifier, exported: ExportedModel, pixels: Pixels
) -> dict[str, Any]:
    """The largest differences between a file and torch; refused where they are too large.

    At the file's own shift estimate and, if it takes one, also at the lowest.
    """
    parts = [pixels[start : start + BATCH] for start in range(0, len(pixels), BATCH)]
    adaptation = model.shift_adaptation
    estimates = [None] if adaptation is None else [None, float(adaptation.limits[0])]
    compared = []
    for estimate in estimates:
        ours = [model.predict(torch.from_numpy(p).permute(0, 3, 1, 2), estimate) for p in parts]
        theirs = [exported.predict(part, estimate) for part in parts]
        compared.append(compare_outputs(concatenate(ours), concatenate(theirs)))
    differences = {name: max(each[name] for each in compared) for name in compared[0]}
    score = differences.get("shift_score", 0.0)
    if score > TOLERANCE:
        raise ValueError(
            f"the file must compute what torch does, but on {len(pixels)} images shift_score "
            f"differs by as much as {score:.2g} of confidence: nothing was written"
        )
    if differences["classes_differ"] or not differences["confidence"] <= TOLERANCE:
        raise ValueError(
            f"the file must compute what torch does, but on {len(pixels)} images confidence "
            f"differs by {differences['confidence']:.2g} and {differences['classes_differ']} "
            "classes are others: nothing was written"
        )
    if differences["in_set_differs"] > MAX_SETS_DIFFER:
        raise ValueError(
            f"the file must compute what torch does, but on {len(pixels)} images "
            f"{differences['in_set_differs']:.1%} of the classes are in a set here and not there: "
            "nothing was written"
        )
    return differences


def compare_outputs(ours: Outputs, theirs: Outputs) -> dict[str, Any]:
    """The largest differences, and how many classes and decisions are others."""
    # Where two classes are as likely to the last digits, rounding decides between them.
    rows = np.arange(len(ours))
    apart = theirs.probabilities[rows, ours.classes] - theirs.probabilities[rows, theirs.classes]
    accept_differs = 0
    if ours.accept is not None and theirs.accept is not None:
        accept_differs = int(np.sum(ours.accept != theirs.accept))
    in_set_differs = 0.0
    if ours.in_set is not None and theirs.in_set is not None:
        in_set_differs = float(np.mean(ours.in_set != theirs.in_set))
    others = {}
    if ours.temperature is not None and theirs.temperature is not None:
        log_temperature = np.log(ours.temperature) - np.log(theirs.temperature)
        others["log_temperature"] = float(np.abs(log_temperature).max())
    c = ours.unadapted_confidence
    if c is not None and theirs.shift_score is not None:
        # Log-odds, in which confidences near 0 and 1 lie far apart: as differences of confidence.
        apart_by = np.abs(ours.shift_score - theirs.shift_score) * c * (1 - c)
        others["shift_score"] = float(apart_by.max())
    return {
        "confidence": float(np.abs(ours.confidence - theirs.confidence).max()),
        "probabilities": float(np.abs(ours.probabilities - theirs.probabilities).max()),
        "classes_differ": int(np.sum(np.abs(apart) > TOLERANCE)),
        "accept_differs": accept_differs,
        "in_set_differs": in_set_differs,
        **others,
    }


def make_comparison_images(
    model: CalibratedClassifier, images: Sequence[Any], size: tuple[int, int] | None
) -> Pixels:
    """Bytes of images at the classifier's size: those given, else synthetic ones."""
    own = model.preprocessing.size
    if own is not None and size is not None and size != own:
        raise ValueError(f"size must be {own}, which the classifier takes, got {size}")
    if images:
        batch = make_batch(list(images), model.preprocessing)
        actual = tuple(batch.shape[2:])
        if size is not None and actual != size:
            raise ValueError(f"size must be that of the images, {actual}, got {size}")
        return _to_pixels(batch)
    size = own or size
    if size is None:
        raise ValueError(
            f"{model.classifier.name} does not say what size of images it takes: give size, or "
            "images to compare on"
        )
    return make_synthetic_images(SYNTHETIC_IMAGES, size)


def read_samples(folder: Path, count: int) -> list[Any]:
    """So many images of a folder, evenly spread over its files."""
    if count < 1:
        raise ValueError(f"samples must be at least 1, got {count}")
    names = list(list_images(folder)[0]) if folder.is_dir() else []
    if not names:
        raise FileNotFoundError(f"images must be a folder with images, but {folder} has none")
    files = ImageFiles(folder, names[:: max(1, len(names) // count)][:count])
    return [files(i) for i in range(len(files.names))]


def make_synthetic_images(count: int, size: tuple[int, int]) -> Pixels:
    """Coloured blobs, the same every time."""
    seeds = torch.arange(count)[:, None, None, None].expand(-1, 3, 4, 4) / max(count, 1)
    coarse = draw_uniforms(seeds.float(), 3 * 64, 7).reshape(count, 3, 8, 8)
    blobs = nn.functional.interpolate(coarse, size=size, mode="bicubic").clamp(0, 1)
    return _to_pixels(blur(blobs))


def _to_pixels(images: Tensor) -> Pixels:
    return (images * 255).round().byte().permute(0, 2, 3, 1).contiguous().numpy()
