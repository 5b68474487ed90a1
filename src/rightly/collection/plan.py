"""The plan of a collection: views, shifts, precision, and the settings stored with the rows."""

from dataclasses import dataclass
from typing import Any

import torch

from rightly.checks import check_choice
from rightly.classifiers.classifier import Classifier
from rightly.datasets.decoding import UnreadableImage
from rightly.datasets.image_dataset import ImageDataset
from rightly.transforms.shifts import SHIFTS
from rightly.transforms.views import VIEWS

# As many passes as the paper's three; they gain far more (python -m benchmarks.own.view_sets).
DEFAULT_VIEWS = ("hflip", "translation", "zoom")
SHARD = 1024  # images; killed runs lose at most this much work
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Plan:
    """What is computed for every image, and how."""

    views: tuple[str, ...] = DEFAULT_VIEWS
    shifts: tuple[str, ...] = ()  # "name" at severity 3, or "name:severity"
    features: bool = False
    precision: str = "float32"
    dtype: str = "float32"
    seed: int = 0
    unreadable: str = "stop"
    allow_random: bool = False  # take a classifier that gives an image other logits each time
    shard_size: int = SHARD

    def __post_init__(self) -> None:
        for name in self.views:
            VIEWS.find(name)
        shifts = [parse_shift(text) for text in self.shifts]
        for kind, parsed in (("views", self.views), ("shifts", shifts)):
            if len(set(parsed)) != len(parsed):
                names = ", ".join(getattr(self, kind))
                raise ValueError(f"{kind} must be different ones, got {names}")
        check_choice("precision", self.precision, list(PRECISIONS))
        check_choice("dtype", self.dtype, ["float32", "float16"])
        check_choice("unreadable", self.unreadable, ["stop", "skip"])
        if self.shard_size < 1:
            raise ValueError(f"shard_size must be at least 1, got {self.shard_size}")

    def settings(self, classifier: Classifier, images: ImageDataset) -> dict[str, Any]:
        """All that the stored numbers depend on, for JSON."""
        return {
            **describe_model(classifier, images),
            "images": len(images),
            "images_fingerprint": images.fingerprint,
            "class_names": images.class_names or classifier.class_names,
            "views": list(self.views),
            "shifts": list(self.shifts),
            "features": self.features,
            "image_hash": True,  # older collections have none
            "precision": self.precision,
            "dtype": self.dtype,
            "seed": self.seed,
            "shard_size": self.shard_size,
            "shards": len(self.shards(len(images))),
        }

    def describe_passes(self, images: int) -> str:
        """The forward passes for so many images, so that one can still stop before them."""
        rows, looks = 1 + len(self.shifts), 1 + len(self.views)
        return (
            f"{images * rows * looks:,} forward passes: {images:,} images x {rows} (unshifted, "
            f"{rows - 1} shifts) x {looks} (image, {looks - 1} views)"
        )

    def shards(self, images: int) -> range:
        """Numbers of the shards that so many images make."""
        return range(-(-images // self.shard_size))

    def rows(self, k: int, images: int) -> range:
        """Numbers of the images in one shard."""
        return range(k * self.shard_size, min((k + 1) * self.shard_size, images))


def describe_model(classifier: Classifier, images: ImageDataset) -> dict[str, Any]:
    """The settings that tell the classifier."""
    return {
        "model": classifier.name,
        "model_fingerprint": classifier.fingerprint,
        "preprocessing": classifier.preprocessing.as_dict(),
        "image_size": _find_size(classifier, images),
    }


def _find_size(classifier: Classifier, images: ImageDataset) -> list[int] | None:
    """Height and width at which images are shown: as asked for, or of the first that is readable.

    Where nothing is asked for all images must have one size, so the first tells it.
    """
    if classifier.preprocessing.size is not None:
        return list(classifier.preprocessing.size)
    for i in range(len(images)):
        try:
            return list(classifier.preprocessing.pixels(images.read(i)).shape[:2])
        except UnreadableImage:
            continue
    return None


def parse_shift(text: str) -> tuple[str, int]:
    """Name and severity of "name:severity"; "name" alone means severity 3."""
    name, _, severity = text.partition(":")
    SHIFTS.find(name)
    if severity and severity not in tuple("12345"):
        raise ValueError(f"the severity of a shift must be 1 to 5, as in {name}:3, got {text!r}")
    return name, int(severity or 3)
