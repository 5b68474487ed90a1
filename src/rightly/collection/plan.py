"""What to ask a classifier about every image, and what the answers depend on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rightly.classifiers import Classifier
from rightly.datasets import ImageDataset
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

DEFAULT_VIEWS = ("rotation", "grayscale", "color_jitter")  # the paper's
SHARD = 1024  # images; killed runs lose at most this much work
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Plan:
    """What to ask the classifier about every image."""

    views: tuple[str, ...] = DEFAULT_VIEWS
    shifts: tuple[str, ...] = ()  # "name" at severity 3, or "name:severity"
    features: bool = False
    precision: str = "float32"
    dtype: str = "float32"
    seed: int = 0
    unreadable: str = "stop"
    shard_size: int = SHARD

    def __post_init__(self) -> None:
        for name in self.views:
            VIEWS.find(name)
        shifts = [severity_of(text) for text in self.shifts]
        for kind, asked in (("views", self.views), ("shifts", shifts)):
            if len(set(asked)) != len(asked):
                told = ", ".join(getattr(self, kind))
                raise ValueError(f"{kind} must be different ones, got {told}")
        _must_be("precision", self.precision, list(PRECISIONS))
        _must_be("dtype", self.dtype, ["float32", "float16"])
        _must_be("unreadable", self.unreadable, ["stop", "skip"])
        if self.shard_size < 1:
            raise ValueError(f"shard_size must be at least 1, got {self.shard_size}")

    def settings(self, classifier: Classifier, images: ImageDataset) -> dict[str, Any]:
        """All that the stored numbers depend on."""
        return {
            "model": classifier.name,
            "model_fingerprint": classifier.fingerprint,
            "preprocessing": classifier.preprocessing.as_dict(),
            "images": len(images),
            "images_fingerprint": images.fingerprint,
            "class_names": images.class_names or classifier.class_names,
            "views": list(self.views),
            "shifts": list(self.shifts),
            "features": self.features,
            "precision": self.precision,
            "dtype": self.dtype,
            "seed": self.seed,
            "shard_size": self.shard_size,
            "shards": len(self.shards(len(images))),
        }

    def shards(self, images: int) -> range:
        """Numbers of the shards that so many images make."""
        return range(-(-images // self.shard_size))

    def rows(self, k: int, images: int) -> range:
        """Numbers of the images in one shard."""
        return range(k * self.shard_size, min((k + 1) * self.shard_size, images))


def severity_of(text: str) -> tuple[str, int]:
    """The name and severity that "name" or "name:severity" says."""
    name, _, severity = text.partition(":")
    SHIFTS.find(name)
    if severity and severity not in tuple("12345"):
        raise ValueError(f"the severity of a shift must be 1 to 5, as in {name}:3, got {text!r}")
    return name, int(severity or 3)


def _must_be(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
