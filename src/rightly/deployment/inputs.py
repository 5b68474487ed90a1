"""What a calibrated classifier is built from and takes: classifier, views, batches of images."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.calibrators import Calibrator
from rightly.classifiers import Classifier, Preprocessing, open_model
from rightly.datasets.decoding import to_image
from rightly.deployment.provenance import expected_preprocessing
from rightly.deployment.stages import Transform
from rightly.transforms.image_tensors import Images, check_images
from rightly.transforms.views import VIEWS

Views = Sequence[str] | Mapping[str, Transform]


def make_batch(images: Any, preprocessing: Preprocessing) -> Images:
    """Anything that shows images, as floats in [0, 1] of the size that the classifier takes."""
    if isinstance(images, np.ndarray) and images.ndim == 4:
        raise TypeError(
            "images must be a tensor (n, 3, h, w) or a list of images, got an array: use "
            "torch.from_numpy(array), or list(array) for images of (h, w, 3) bytes"
        )
    if not isinstance(images, Tensor):
        items = images if isinstance(images, list | tuple) else [images]
        if not items:
            raise ValueError("images must hold at least one image, got none")
        pixels = [
            preprocessing.pixels(to_image(item, f"number {i}")) for i, item in enumerate(items)
        ]
        images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2)
    if images.dtype == torch.uint8:
        images = images.float() / 255
    check_images(images)
    if not len(images):
        raise ValueError("images must hold at least one image, got an empty batch")
    size = preprocessing.size
    if size is not None and tuple(images.shape[2:]) != size:
        raise ValueError(
            f"images must have the size {size} that the classifier takes, got "
            f"{tuple(images.shape[2:])}: give a list of images, or resize and cut to {size}"
        )
    return images


def resolve_views(
    calibrator: Calibrator, views: Views | None
) -> tuple[tuple[str, ...], tuple[Transform, ...]]:
    """Names and functions of the views that a calibrator was fitted with."""
    names = calibrator.view_names
    asked = tuple(names if views is None else views)
    if asked != names:
        raise ValueError(
            f"views must be those that {calibrator.title} was fitted with, {list(names)}, in this "
            f"order, got {list(asked)}"
        )
    if isinstance(views, Mapping):
        return names, tuple(views.values())
    try:
        return names, tuple(VIEWS.find(name) for name in names)
    except ValueError as error:
        raise ValueError(
            f"{error}: give views as a mapping from each name to a function of images"
        ) from error


def open_classifier(
    classifier: Any,
    calibrator: Calibrator,
    preprocessing: Preprocessing | None,
    output: str | int | None,
    device: str | torch.device,
) -> Classifier:
    """The classifier; one without a config of its own is shown images as when it was collected."""
    has_config = isinstance(classifier, Classifier) or (
        isinstance(classifier, str) and not classifier.startswith(("onnx:", "pt2:"))
    )
    if preprocessing is None and not has_config:
        preprocessing = expected_preprocessing(calibrator)
    opened = open_model(classifier, device=device, preprocessing=preprocessing, output=output)
    expected = expected_preprocessing(calibrator)
    if expected is not None and opened.preprocessing == replace(expected, size=None):
        # One that takes any size is shown images as large as when it was collected.
        opened = copy(opened)
        opened.preprocessing = expected
    return opened
