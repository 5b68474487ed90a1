"""Collects what own.py measures, with Rightly's own views and all of its shifts.

    python benchmarks/unseen.py CIFAR10 OUT [--classifiers resnet20,mobilenet,densenet] \
        [--images 5000] [--shifted 2000] [--rehearsed 1000] [--device cuda]
    python benchmarks/own.py OUT --classifiers all --shifts all --rehearsal OUT/rehearsal

Half of the test images, drawn at random, are for calibration, the others judge; then the other way
round, since one half is half a point more accurate than the other, and as much ECE is at stake.
OUT/CLASSIFIER_{1,2}/{cal,ind,SHIFT}.npz: judging images are shifted at all five severities in turn.
OUT/rehearsal/CLASSIFIER_{1,2}.npz: calibration images at severity 4. Hours on two CPU cores, three
minutes on a GPU; files that are there already are not collected again.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import rightly
from kit import cifar10_module
from rehearsal import said
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

REHEARSED_AT = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cifar10", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--classifiers", default="resnet20,mobilenet,densenet")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--shifted", type=int, default=2000)
    parser.add_argument("--rehearsed", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    module = cifar10_module(chosen.cifar10)
    pixels, truth = module.images("test")
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).to(chosen.device)
    mixed = np.random.default_rng(0).permutation(len(images))  # they are stored class by class
    halves = [mixed[first::2][: chosen.images] for first in (0, 1)]
    marks = {
        "shift": np.repeat(np.arange(1, len(SHIFTS) + 1), len(halves[0][: chosen.rehearsed])),
        "shift_names": tuple(f"{kind}:{REHEARSED_AT}" for kind in SHIFTS),
    }
    for name in chosen.classifiers.split(","):
        model = module.classifier(name).to(chosen.device)
        for number, (cal, ind) in enumerate((halves, halves[::-1]), start=1):
            folder = chosen.out / f"{name}_{number}"
            for part, rows in (("cal", cal), ("ind", ind)):
                _write(folder / f"{part}.npz", model, images[rows], truth[rows])
            rows = ind[: chosen.shifted]
            for kind in SHIFTS:
                _write(folder / f"{kind}.npz", model, _at_all(kind, images[rows]), truth[rows])
            rows = cal[: chosen.rehearsed]
            shown = torch.cat([SHIFTS.find(kind)(images[rows], REHEARSED_AT, 0) for kind in SHIFTS])
            labels = np.tile(truth[rows], len(SHIFTS))
            _write(chosen.out / "rehearsal" / f"{folder.name}.npz", model, shown, labels, **marks)


def _at_all(kind: str, images: Tensor) -> Tensor:
    """The images at severities 1 to 5 in turn."""
    shown = torch.empty_like(images)
    for severity in range(1, 6):
        some = slice(severity - 1, None, 5)
        shown[some] = SHIFTS.find(kind)(images[some], severity, 0)
    return shown


def _write(path: Path, model: nn.Module, images: Tensor, labels: np.ndarray, **marks) -> None:
    """What the classifier says about these images and their views, unless it is there."""
    if path.exists():
        return
    logits, views = [], []
    for some in images.split(500):
        logits.append(said(model, some).cpu())
        views.append(torch.stack([said(model, view(some)).cpu() for view in VIEWS.values()], 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    both = Predictions(torch.cat(logits), torch.cat(views), view_names=tuple(VIEWS), **marks)
    rightly.save(path, both, labels)
    print(f"{path} written", flush=True)


if __name__ == "__main__":
    main()
