"""Collects rehearsal rows that go with the stored CIFAR-10 predictions.

    python benchmarks/rehearsal.py CIFAR10 PREDICTIONS CLASSIFIER OUT [--images 2500] \
        [--shifts all:4] [--device cuda]

What `rightly collect --shifts` does, with two differences: the images are those of
PREDICTIONS/CLASSIFIER/cal.npz, found by what the classifier says about them, and the views are
those of that file, whose rotation has black corners and whose blur is stronger than Rightly's.
(Its colour jitter and random erasing are drawn at random; ours stand in for them.)
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import rightly
from kit import cifar10_module
from rightly.collection.plan import parse_shift
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS


def rotation(images: Tensor) -> Tensor:
    cos, sin = math.cos(math.radians(15)), math.sin(math.radians(15))
    turn = images.new_tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]]).expand(len(images), -1, -1)
    grid = F.affine_grid(turn, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def blur(images: Tensor) -> Tensor:
    bell = (-0.5 * (torch.arange(-2.0, 3, device=images.device) / 0.7).square()).exp()
    bell = bell / bell.sum()
    kernel = (bell[:, None] * bell).repeat(3, 1, 1, 1)
    return F.conv2d(F.pad(images, (2,) * 4, mode="reflect"), kernel, groups=3)


OF_THE_FILES = {
    **VIEWS,
    "rotation": rotation,
    "blur": blur,
    "rot90": VIEWS["rotation_90"],
    "shift": VIEWS["translation"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cifar10", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("classifier")
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=2500)
    parser.add_argument("--shifts", default="all:4")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    module = cifar10_module(chosen.cifar10)
    pixels, labels = module.images("test")
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).to(chosen.device)
    model = module.classifier(chosen.classifier).to(chosen.device)
    stored, _ = rightly.load(chosen.predictions / chosen.classifier / "cal.npz")
    found = torch.cdist(stored.logits, said(model, images).cpu()).argmin(1)[: chosen.images]
    kind, _, severity = chosen.shifts.partition(":")
    every = [f"{name}:{severity}" for name in SHIFTS]
    names = every if kind == "all" else chosen.shifts.split(",")
    logits, views, numbers = [], [], []
    for number, name in enumerate(names, start=1):
        kind, severity = parse_shift(name)
        for rows in found.split(200):
            shifted = SHIFTS.find(kind)(images[rows], severity, 0)
            logits.append(said(model, shifted))
            looks = [said(model, OF_THE_FILES[view](shifted)) for view in stored.view_names]
            views.append(torch.stack(looks, 1))
            numbers += [number] * len(rows)
        print(f"{name} done", flush=True)
    predictions = Predictions(
        torch.cat(logits).cpu(),
        torch.cat(views).cpu(),
        view_names=stored.view_names,
        shift=np.array(numbers),
        shift_names=names,
    )
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    rightly.save(chosen.out, predictions, np.tile(labels[found.numpy()], len(names)))


@torch.inference_mode()
def said(model: nn.Module, images: Tensor) -> Tensor:
    """Logits; small batches are fastest on a CPU."""
    return torch.cat([model(some) for some in images.split(1000 if images.is_cuda else 32)])


if __name__ == "__main__":
    main()
