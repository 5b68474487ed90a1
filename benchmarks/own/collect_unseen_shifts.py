"""Collects what evaluate_own measures, with Rightly's own views and all of its shifts.

    python -m benchmarks.own.collect_unseen_shifts CIFAR10 OUT \
        [--classifiers resnet20,mobilenet,densenet] [--images 5000] [--shifted 2000] \
        [--augmented 1000] [--mixed] [--device cuda]
    python -m benchmarks.own.evaluate_own OUT --classifiers all --shifts all \
        --shift-augmentation OUT/shift_augmentation

Half of the test images, drawn at random, are for calibration, the others test; then the other way
round, since one half is half a point more accurate than the other, and as much ECE is at stake.
OUT/CLASSIFIER_{1,2}/{cal,ind,SHIFT}.npz: test images are shifted at all five severities in turn.
OUT/shift_augmentation/CLASSIFIER_{1,2}.npz: calibration images at severity 4; with --mixed also
OUT/shift_augmentation_mixed, at severities 1 to 5 in turn, for shift_augmentation. Hours on two CPU
cores, six minutes on a GPU; files that are there already are not collected again.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import rightly
from benchmarks.kit import load_cifar10
from benchmarks.own.classifier_outputs import (
    compute_logits,
    compute_view_logits,
    read_test_images,
)
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

SEVERITY = 4  # of shift augmentation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cifar10", type=Path, help="the folder of cifar10.py and its weights")
    parser.add_argument("out", type=Path)
    parser.add_argument("--classifiers", default="resnet20,mobilenet,densenet")
    parser.add_argument("--images", type=int, default=5000, help="of each half")
    parser.add_argument("--shifted", type=int, default=2000, help="test images a shift")
    parser.add_argument("--augmented", type=int, default=1000, help="calibration images a shift")
    parser.add_argument("--mixed", action="store_true", help="augmentation at all severities too")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    module = load_cifar10(options.cifar10)
    images, labels = read_test_images(module, options.device)
    mixed = np.random.default_rng(0).permutation(len(images))  # they are stored class by class
    halves = [mixed[first::2][: options.images] for first in (0, 1)]
    for name in options.classifiers.split(","):
        model = module.classifier(name).to(options.device)
        for number, (cal, test) in enumerate((halves, halves[::-1]), start=1):
            folder = options.out / f"{name}_{number}"
            for part, rows in (("cal", cal), ("ind", test)):
                write_predictions(folder / f"{part}.npz", model, images[rows], labels[rows])
            rows = test[: options.shifted]
            for kind in SHIFTS:
                shifted = shift_at_all_severities(kind, images[rows])
                write_predictions(folder / f"{kind}.npz", model, shifted, labels[rows])
            rows = cal[: options.augmented]
            for place, severity in list_augmentations(options.mixed).items():
                path = options.out / place / f"{folder.name}.npz"
                write_augmentation(path, model, images[rows], labels[rows], severity)


def shift_at_all_severities(kind: str, images: Tensor) -> Tensor:
    """The images at severities 1 to 5 in turn."""
    shifted = torch.empty_like(images)
    for severity in range(1, 6):
        rows = slice(severity - 1, None, 5)
        shifted[rows] = SHIFTS.find(kind)(images[rows], severity, 0)
    return shifted


def list_augmentations(with_mixed: bool) -> dict[str, int | None]:
    """Folders of shift augmentation, with its severity; None for all of them in turn."""
    mixed: dict[str, int | None] = {"shift_augmentation_mixed": None} if with_mixed else {}
    return {"shift_augmentation": SEVERITY} | mixed


def name_shift(kind: str, severity: int | None) -> str:
    return f"{kind}:{'1-5' if severity is None else severity}"


def write_augmentation(
    path: Path, model: nn.Module, images: Tensor, labels: np.ndarray, severity: int | None
) -> None:
    """Writes predictions for the images under every shift, marked with it."""
    shifted = [
        shift_at_all_severities(kind, images)
        if severity is None
        else SHIFTS.find(kind)(images, severity, 0)
        for kind in SHIFTS
    ]
    write_predictions(
        path,
        model,
        torch.cat(shifted),
        np.tile(labels, len(SHIFTS)),
        shift=np.repeat(np.arange(1, len(SHIFTS) + 1), len(images)),
        shift_names=tuple(name_shift(kind, severity) for kind in SHIFTS),
        image=np.tile(np.arange(len(images)), len(SHIFTS)),  # the rows of cal.npz
    )


def write_predictions(
    path: Path, model: nn.Module, images: Tensor, labels: np.ndarray, **shifts: Any
) -> None:
    """Writes predictions for images and their views, unless the file is there."""
    if path.exists():
        return
    logits = compute_logits(model, images)
    views = compute_view_logits(model, images, VIEWS.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    rightly.save(path, Predictions(logits, views, view_names=tuple(VIEWS), **shifts), labels)
    print(f"{path} written", flush=True)


if __name__ == "__main__":
    main()
