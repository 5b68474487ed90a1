"""Collects shift augmentation that goes with the stored CIFAR-10 predictions.

    python -m benchmarks.own.collect_shift_augmentation CIFAR10 PREDICTIONS CLASSIFIER OUT \
        [--images 2500] [--shifts all:4] [--device cuda]

What `rightly collect --shifts` does, with two differences: the images are those of
PREDICTIONS/CLASSIFIER/cal.npz, matched by the classifier's logits, and the views are those of that
file, whose rotation has black corners and whose blur is stronger than Rightly's. (Its colour jitter
and random erasing are drawn at random; ours stand in for them.)
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import rightly
from benchmarks.kit import load_cifar10
from benchmarks.own.classifier_outputs import (
    compute_logits,
    compute_view_logits,
    read_test_images,
)
from rightly.collection.plan import parse_shift
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS


def rotate(images: Tensor) -> Tensor:
    """Rotates by 15 degrees, black where the image ends."""
    cos, sin = math.cos(math.radians(15)), math.sin(math.radians(15))
    turn = images.new_tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]]).expand(len(images), -1, -1)
    grid = F.affine_grid(turn, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def blur(images: Tensor) -> Tensor:
    """Blurs by a Gaussian of 0.7 pixels."""
    bell = (-0.5 * (torch.arange(-2.0, 3, device=images.device) / 0.7).square()).exp()
    bell = bell / bell.sum()
    kernel = (bell[:, None] * bell).repeat(3, 1, 1, 1)
    return F.conv2d(F.pad(images, (2,) * 4, mode="reflect"), kernel, groups=3)


# By the names of the stored files.
STORED_VIEWS = {
    **VIEWS,
    "rotation": rotate,
    "blur": blur,
    "rot90": VIEWS["rotation_90"],
    "shift": VIEWS["translation"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cifar10", type=Path, help="the folder of cifar10.py and its weights")
    parser.add_argument("predictions", type=Path)
    parser.add_argument("classifier")
    parser.add_argument("out", type=Path, help="the file to write (.npz)")
    parser.add_argument("--images", type=int, default=2500)
    parser.add_argument("--shifts", default="all:4", help="all:SEVERITY, or names with severities")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    module = load_cifar10(options.cifar10)
    images, labels = read_test_images(module, options.device)
    model = module.classifier(options.classifier).to(options.device)
    stored, _ = rightly.load(options.predictions / options.classifier / "cal.npz")
    numbers = torch.cdist(stored.logits, compute_logits(model, images)).argmin(1)
    numbers = numbers[: options.images]
    names = list_shifts(options.shifts)
    views = [STORED_VIEWS[view] for view in stored.view_names]
    logits, view_logits = [], []
    for name in names:
        kind, severity = parse_shift(name)
        for rows in numbers.split(200):
            shifted = SHIFTS.find(kind)(images[rows], severity, 0)
            logits.append(compute_logits(model, shifted))
            view_logits.append(compute_view_logits(model, shifted, views))
        print(f"{name} done", flush=True)
    predictions = Predictions(
        torch.cat(logits),
        torch.cat(view_logits),
        view_names=stored.view_names,
        shift=np.repeat(np.arange(1, len(names) + 1), len(numbers)),
        shift_names=names,
        image=np.tile(np.arange(len(numbers)), len(names)),  # the rows of cal.npz
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rightly.save(options.out, predictions, np.tile(labels[numbers.numpy()], len(names)))


def list_shifts(text: str) -> list[str]:
    """All shifts at one severity, or the names in a list joined by commas."""
    kind, _, severity = text.partition(":")
    return [f"{name}:{severity}" for name in SHIFTS] if kind == "all" else text.split(",")


if __name__ == "__main__":
    main()
