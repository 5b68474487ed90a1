"""A small classifier with its calibrator, exported once for all tests of deployment."""

from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

import rightly
import rightly.datasets
import rightly.deployment
from rightly.classifiers import Preprocessing
from rightly.datasets import open_images
from rightly.predictions import Source
from rightly.transforms.shifts import STANDARD_SHIFTS

NAMES = ("red", "green", "blue", "dark")
VIEWS = ("hflip", "grayscale", "color_jitter")
PREPROCESSING = Preprocessing((16, 16), 18, mean=(0.4, 0.5, 0.5), std=(0.2, 0.25, 0.3))


class Small(nn.Module):
    """Convolution, pooling, linear layer; the same weights every time."""

    def __init__(self, classes: int = 4, seed: int = 0) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(8, classes)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))

    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)))


def pictures(count: int, seed: int = 0, size: int = 16) -> np.ndarray:
    """Bytes of coarse random pictures, (count, size, size, 3)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (count, 4, 4, 3), dtype=np.uint8)
    return coarse.repeat(size // 4, 1).repeat(size // 4, 2)


def to_tensor(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2)


@cache
def predictions():
    """What the small classifier says about 400 pictures, and labels it gets right now and then."""
    images = list(pictures(400, seed=1))
    classifier = rightly.classifiers.open_model(Small(), preprocessing=PREPROCESSING)
    data = open_images([(image, 0) for image in images])
    collected, _ = rightly.collect(classifier, data, views=VIEWS, features=True)
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(len(images), 4, generator=generator).log().neg().log().neg()
    return collected, (collected.logits / 3 + noise).argmax(-1)


def fitted(method: str = "ca_views", **arguments):
    collected, labels = predictions()
    module = rightly.classifiers.open_model(Small(), preprocessing=PREPROCESSING)
    source = {
        "name": module.name,
        "fingerprint": module.fingerprint,
        "preprocessing": PREPROCESSING.as_dict(),
    }
    named = rightly.Predictions(
        collected.logits,
        collected.view_logits,
        collected.features,
        collected.view_names,
        NAMES,
        source=Source(classifier=source),
    )
    return rightly.fit(named, labels, method, select_views="budget" in arguments, **arguments)


def rehearsed():
    """Rightly's own, fitted on noisy copies as if they were four kinds of shifts: curved."""
    collected, labels = predictions()
    generator = torch.Generator().manual_seed(5)
    parts = []
    for s in range(5):
        noise = s * torch.randn(collected.logits.shape, generator=generator)
        marks = {"shift": np.full(len(collected), s), "shift_names": STANDARD_SHIFTS[:4]}
        views = collected.view_logits + noise[:, None]
        parts.append(rightly.Predictions(collected.logits + noise, views, None, VIEWS, **marks))
    return rightly.fit(
        rightly.concatenate(parts), labels.repeat(5), "rightly", threshold=0.5, select_views=False
    )


def exported(folder: Path, suffix: str, **arguments) -> Path:
    """A file with the small classifier."""
    path = folder / f"model{suffix}"
    model = rightly.CalibratedClassifier(Small(), fitted(**arguments))
    rightly.deployment.export_classifier(model, path, list(pictures(4)))
    return path
