"""Collects what `adapting` and `slope` measure on ImageNet: EfficientNet-Lite0 under every shift.

    python -m benchmarks.own.collect_imagenet_shifts IMAGES OUT [--mixed] [--device cuda]
    python -m benchmarks.own.adapting OUT --rows 1000 --device cuda
    python -m benchmarks.own.slope OUT/lite0/cal.npz OUT/lite0/ind.npz OUT/lite0/elastic.npz

IMAGES is a folder with the kit's images.zip (see benchmarks/kit.py for the classifier's packages).
Of 2,000 images a random half is for calibration. Test images are shifted at all five severities in
turn, calibration images at severity 4, under the kinds of STANDARD_SHIFTS; with --mixed also at all
severities in turn, for shift_augmentation. Four minutes on a GPU.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import rightly
from benchmarks.kit import efficientnet_lite0
from benchmarks.own.collect_unseen_shifts import (
    list_augmentations,
    name_shift,
    shift_at_all_severities,
)
from benchmarks.own.shift_accuracies import read_imagenet
from rightly.classifiers import Classifier, open_model
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS, kind
from rightly.transforms.views import VIEWS

BATCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mixed", action="store_true", help="augmentation at all severities too")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    batches = read_imagenet(options.images / "images.zip", 2000)
    images, labels = (torch.cat(part) for part in zip(*batches, strict=True))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    cal, test = order.chunk(2)
    model, preprocessing = efficientnet_lite0()
    classifier = open_model(model, device=options.device, preprocessing=preprocessing)
    folder = options.out / "lite0"
    write(folder / "cal.npz", classifier, images[cal], labels[cal])
    write(folder / "ind.npz", classifier, images[test], labels[test])
    for name in SHIFTS:
        shifted = shift_in_batches(classifier, images[test], name, None)
        write(folder / f"{name}.npz", classifier, shifted, labels[test])
    kinds = [kind(shift) for shift in STANDARD_SHIFTS]
    count = torch.arange(len(cal))
    for place, severity in list_augmentations(options.mixed).items():
        shifted = [shift_in_batches(classifier, images[cal], name, severity) for name in kinds]
        write(
            options.out / place / "lite0.npz",
            classifier,
            torch.cat(shifted),
            labels[cal].repeat(len(kinds)),
            shift=torch.arange(1, len(kinds) + 1).repeat_interleave(len(cal)),
            shift_names=tuple(name_shift(name, severity) for name in kinds),
            image=count.repeat(len(kinds)),
        )


def shift_in_batches(
    classifier: Classifier, images: Tensor, name: str, severity: int | None
) -> Tensor:
    """The images under a shift, at one severity or at all of them in turn."""
    parts = []
    for batch in images.split(BATCH):
        here = batch.to(classifier.device)
        if severity is None:
            parts.append(shift_at_all_severities(name, here).cpu())
        else:
            parts.append(SHIFTS.find(name)(here, severity, 0).cpu())
    return torch.cat(parts)


@torch.inference_mode()
def write(
    path: Path, classifier: Classifier, images: Tensor, labels: Tensor, **shifts: Any
) -> None:
    """Writes predictions for images and their views."""
    logits, views = [], []
    with classifier.prepare():
        for batch in images.split(BATCH):
            here = batch.to(classifier.device)
            logits.append(classifier.forward(here)[0].cpu())
            each = [classifier.forward(view(here))[0].cpu() for view in VIEWS.values()]
            views.append(torch.stack(each, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    joined = Predictions(torch.cat(logits), torch.cat(views), view_names=tuple(VIEWS), **shifts)
    rightly.save(path, joined, labels)
    print(f"{path}: accuracy {float((joined.classes == labels).double().mean()):.3f}", flush=True)


if __name__ == "__main__":
    main()
