"""Accuracy of a classifier under every shift at severities 1 to 5.

    python -m benchmarks.own.shift_accuracies cifar10 CIFAR10 [--classifier NAME] [--images N]
    python -m benchmarks.own.shift_accuracies imagenet IMAGES [--device cuda]

CIFAR10 is the kit's folder with cifar10.py, its weights and images; IMAGES a folder with the kit's
images.zip (the classifier is EfficientNet-Lite0 at 224 pixels, see benchmarks/kit.py). Marked are a
rise of accuracy with severity beyond two standard errors of the paired difference, and a member of
STANDARD_SHIFTS that leaves less than a quarter of the clean accuracy.
"""

import argparse
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.kit import efficientnet_lite0, load_cifar10
from rightly.classifiers import Classifier, open_model
from rightly.collection.plan import parse_shift
from rightly.transforms.shifts import SHIFTS, STANDARD_SHIFTS

SEVERITIES = range(1, 6)
BATCH = 250
Batches = list[tuple[Tensor, Tensor]]  # images in [0, 1], labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=("cifar10", "imagenet"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--classifier", default="resnet20", help="of CIFAR-10")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.data == "cifar10":
        kit = load_cifar10(options.folder)
        model, preprocessing = kit.classifier(options.classifier), None
        batches = read_cifar10(kit, options.images)
    else:
        model, preprocessing = efficientnet_lite0()
        batches = read_imagenet(options.folder / "images.zip", options.images)
    classifier = open_model(model, device=options.device, preprocessing=preprocessing)
    for line in tabulate(measure_shifts(classifier, batches)):
        print(line, flush=True)


def read_cifar10(kit: object, count: int) -> Batches:
    """The first test images."""
    images, labels = kit.images("test")
    pixels = torch.as_tensor(np.asarray(images[:count])).permute(0, 3, 1, 2).float() / 255
    truth = torch.as_tensor(np.asarray(labels[:count])).long()
    return list(zip(pixels.split(BATCH), truth.split(BATCH), strict=True))


def read_imagenet(archive: Path, count: int) -> Batches:
    """Images spread over the archive, cut to 224 pixels from the centre."""
    with zipfile.ZipFile(archive) as stored:
        names = sorted(name for name in stored.namelist() if name.endswith((".jpg", ".JPEG")))
        names = names[:: max(1, len(names) // count)][:count]
        pixels = [read_centre(stored.read(name)) for name in names]
    labels = torch.tensor([int(Path(name).parent.name) for name in names])
    images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2)
    parts = zip(images.split(BATCH), labels.split(BATCH), strict=True)
    return [(part.float() / 255, truth) for part, truth in parts]


def read_centre(data: bytes, side: int = 224) -> np.ndarray:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return np.asarray(image.crop((left, top, left + side, top + side)))


@torch.no_grad()
def measure_shifts(classifier: Classifier, batches: Batches) -> dict[str, np.ndarray]:
    """Correctness of every image: clean (1, n), and by shift (severities, n)."""
    correct: dict[str, list[list[np.ndarray]]] = {}
    with classifier.prepare():
        for images, labels in batches:
            here = images.to(classifier.device)
            for name, severity, shifted in iterate_shifted(here):
                logits, _ = classifier.forward(shifted)
                right = (logits.argmax(-1).cpu() == labels).numpy()
                rows = correct.setdefault(name, [[] for _ in (SEVERITIES if severity else (0,))])
                rows[max(severity - 1, 0)].append(right)
    return {
        name: np.stack([np.concatenate(parts) for parts in rows]) for name, rows in correct.items()
    }


def iterate_shifted(images: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    """The images as they are, then under every shift at every severity."""
    yield "clean", 0, images
    for name, shift in SHIFTS.items():
        for severity in SEVERITIES:
            yield name, severity, shift(images, severity, 0)


def tabulate(correct: dict[str, np.ndarray]) -> list[str]:
    """A line a shift: accuracy in % at severities 1 to 5, and what is wrong with it."""
    clean = correct["clean"].mean()
    standard = {parse_shift(text) for text in STANDARD_SHIFTS}
    lines = [f"{'clean':16}{100 * clean:7.1f}   ({correct['clean'].shape[1]} images)"]
    for name, rows in correct.items():
        if name == "clean":
            continue
        marks = [f"rises {s} to {s + 1}" for s in SEVERITIES[:-1] if is_rise(rows[s - 1], rows[s])]
        marks += [
            f"severity {severity} of the standard shifts below a quarter of clean"
            for kind, severity in standard
            if kind == name and rows[severity - 1].mean() < clean / 4
        ]
        values = "".join(f"{100 * row.mean():7.1f}" for row in rows)
        lines.append(f"{name:16}{values}   {'; '.join(marks)}".rstrip())
    return lines


def is_rise(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether accuracy rises by more than two standard errors of the paired difference."""
    change = after.astype(float) - before
    return bool(change.mean() > 2 * change.std() / len(change) ** 0.5)


if __name__ == "__main__":
    main()
