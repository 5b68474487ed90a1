"""Collects the predictions that come with the package: `rightly demo`, and many tests.

    python -m benchmarks.own.collect_demo CIFAR10 src/rightly/demo_data [--classifier resnet20]

What `rightly collect` and `collect --shifts standard` give by default, with features projected to
their first principal components, in float16 and compressed. CIFAR10 is the folder of cifar10.py and
its weights. Half of the test images, drawn at random, are for calibration, the first thousand also
under each standard shift; the others test, as they are and under shifts that are none of these, at
severities 1 to 5 in turn. Two minutes on a CPU core.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.kit import CLASSES, load_cifar10
from benchmarks.own.classifier_outputs import (
    compute_logits,
    compute_view_logits,
    read_test_images,
)
from benchmarks.own.collect_unseen_shifts import shift_at_all_severities
from rightly.collection.plan import DEFAULT_VIEWS, parse_shift
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS
from rightly.transforms.views import VIEWS

UNSEEN = ("haze", "pixelate")  # what light and what cameras do; none of STANDARD_SHIFTS
CALIBRATION, TEST, AUGMENTED = 5000, 2500, 1000  # images
COMPONENTS = 32


class Outputs(NamedTuple):
    logits: Tensor
    view_logits: Tensor
    features: Tensor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cifar10", type=Path, help="the folder of cifar10.py and its weights")
    parser.add_argument("out", type=Path)
    parser.add_argument("--classifier", default="resnet20")
    options = parser.parse_args()
    module = load_cifar10(options.cifar10)
    images, labels = read_test_images(module, "cpu")
    mixed = np.random.default_rng(0).permutation(len(images))  # they are stored class by class
    cal, test = mixed[:CALIBRATION], mixed[CALIBRATION : CALIBRATION + TEST]
    model = module.classifier(options.classifier)
    augmented = images[cal[:AUGMENTED]]
    shifts = [parse_shift(name) for name in STANDARD_SHIFTS]
    parts = [collect(model, images[cal])]
    parts += [collect(model, SHIFTS.find(kind)(augmented, level, 0)) for kind, level in shifts]
    outputs = Outputs(*(torch.cat(part) for part in zip(*parts, strict=True)))
    mean, basis = find_components(parts[0].features)
    rows = np.concatenate([np.arange(CALIBRATION), np.tile(np.arange(AUGMENTED), len(shifts))])
    number = np.arange(1, len(shifts) + 1).repeat(AUGMENTED)
    write(
        options.out / "cal.npz",
        outputs._replace(features=(outputs.features - mean) @ basis),
        labels[cal[rows]],
        shift=np.concatenate([np.zeros(CALIBRATION), number]).astype(np.uint8),
        shift_names=np.array(STANDARD_SHIFTS),
        image=rows.astype(np.uint16),
    )
    for name, shown in list_tests(images[test]).items():
        outputs = collect(model, shown)
        projected = outputs._replace(features=(outputs.features - mean) @ basis)
        write(options.out / f"{name}.npz", projected, labels[test])


def list_tests(images: Tensor) -> dict[str, Tensor]:
    return {"ind": images, **{kind: shift_at_all_severities(kind, images) for kind in UNSEEN}}


@torch.inference_mode()
def collect(model: torch.nn.Module, images: Tensor) -> Outputs:
    """Logits of images and of the default views, and penultimate features."""
    views = [VIEWS.find(name) for name in DEFAULT_VIEWS]
    features = torch.cat([model.features(batch) for batch in images.split(32)])
    return Outputs(
        compute_logits(model, images), compute_view_logits(model, images, views), features
    )


def find_components(features: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the first principal components, (d, 32)."""
    mean = features.mean(0)
    return mean, torch.linalg.svd(features - mean, full_matrices=False).Vh[:COMPONENTS].T


def write(path: Path, outputs: Outputs, labels: Sequence[int], **shifts: np.ndarray) -> None:
    arrays = {name: value.half().numpy() for name, value in outputs._asdict().items()}
    names = {"view_names": np.array(DEFAULT_VIEWS), "class_names": np.array(CLASSES)}
    np.savez_compressed(path, labels=np.asarray(labels, np.uint8), **arrays, **names, **shifts)
    print(f"{path}: {path.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
