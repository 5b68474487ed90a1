"""Layouts of image data sets on disk.

A new layout is an opener, a test that recognises it, and one record in LAYOUTS.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rightly.checks import abbreviate
from rightly.datasets import cifar, imagenet, iwildcam, objectnet
from rightly.datasets.class_folders import SUFFIXES, list_folders, open_folders
from rightly.datasets.csv_folder import open_flat
from rightly.datasets.image_dataset import ImageDataset, call_opener
from rightly.registry import Registry

SPLIT_NAMES = frozenset({"train", "training", "val", "valid", "validation", "test"})


@dataclass(frozen=True)
class Layout:
    """How a data set lies on disk.

    `open(root, *, ...)` takes the options of `open_images` that mean something for it,
    `recognise(root)` looks for marks that no other layout has, `where` is its download page.
    """

    name: str
    open: Callable[..., ImageDataset]
    recognise: Callable[[Path], bool]
    about: str
    where: str = ""


def _recognise_imagenet(name: str) -> Callable[[Path], bool]:
    return lambda root: imagenet.recognise(root) == name


def _recognise_folders(root: Path) -> bool:
    names = list_folders(root)
    if not names or SPLIT_NAMES & {name.lower() for name in names}:
        return False  # the parts of a set, not its classes
    if all(name in imagenet.read_wnids() for name in names):
        return False  # some ImageNet classes: numbered among 1000, or on their own?
    return all(
        any(file.suffix.lower() in SUFFIXES for file in (root / name).iterdir())
        and not list_folders(root / name)
        for name in names
    )


def _recognise_flat(root: Path) -> bool:
    files = [entry.name for entry in os.scandir(root) if entry.is_file()]
    has_images = any(Path(name).suffix.lower() in SUFFIXES for name in files)
    return has_images and not list_folders(root)


LAYOUTS: Registry[Layout] = Registry(
    "layout",
    Layout,
    [
        Layout(
            "folders",
            open_folders,
            _recognise_folders,
            "a folder per class, numbered in sorted order",
        ),
        Layout(
            "flat",
            open_flat,
            _recognise_flat,
            "one folder, with labels= a CSV of file name and label",
        ),
        Layout(
            "imagenet-val",
            imagenet.open_imagenet,
            _recognise_imagenet("imagenet-val"),
            "1000 folders named by WordNet id or by class number",
            "https://image-net.org/download",
        ),
        Layout(
            "imagenet-a",
            imagenet.open_imagenet_subset,
            _recognise_imagenet("imagenet-a"),
            "200 folders named by WordNet id; logits restricted to them",
            "https://github.com/hendrycks/natural-adv-examples",
        ),
        Layout(
            "imagenet-r",
            imagenet.open_imagenet_subset,
            _recognise_imagenet("imagenet-r"),
            "200 folders named by WordNet id; logits restricted to them",
            "https://github.com/hendrycks/imagenet-r",
        ),
        Layout(
            "imagenet-sketch",
            imagenet.open_imagenet,
            _recognise_imagenet("imagenet-sketch"),
            "1000 folders named by WordNet id",
            "https://github.com/HaohanWang/ImageNet-Sketch",
        ),
        Layout(
            "objectnet",
            objectnet.open_objectnet,
            objectnet.recognise,
            "images/ and mappings/; logits restricted to the 113 classes shared with ImageNet",
            "https://objectnet.dev",
        ),
        Layout(
            "cifar10",
            cifar.open_cifar10,
            cifar.is_cifar10,
            "binary or Python batches; split= train or test",
            "https://www.cs.toronto.edu/~kriz/cifar.html",
        ),
        Layout(
            "cifar10.1",
            cifar.open_cifar10_1,
            cifar.is_cifar10_1,
            "pairs of .npy files; split= v4 or v6",
            "https://github.com/modestyachts/CIFAR-10.1",
        ),
        Layout(
            "cifar10-c",
            cifar.open_cifar10_c,
            cifar.is_cifar10_c,
            ".npy files; split= the shift, severity= 1 to 5",
            "https://zenodo.org/records/2535967",
        ),
        Layout(
            "cinic10",
            cifar.open_cinic10,
            cifar.is_cinic10,
            "train/, valid/ and test/ with a folder per class; split= one of them",
            "https://github.com/BayesWatch/cinic-10",
        ),
        Layout(
            "iwildcam",
            iwildcam.open_iwildcam,
            iwildcam.recognise,
            "WILDS: metadata.csv and train/; split= id_val, id_test, val, test or train",
            "https://wilds.stanford.edu/datasets/#iwildcam",
        ),
    ],
)


def recognise_layout(root: Path) -> str:
    """The layout of a folder, where marks that only one layout has settle it."""
    matches = [name for name, layout in LAYOUTS.items() if layout.recognise(root)]
    # 1000 numbered folders are a folder per class as well: the published name says more.
    matches = [name for name in matches if name != "folders"] or matches
    if len(matches) == 1:
        return matches[0]
    inside = sorted(path.name for path in root.iterdir())
    raise ValueError(
        f"the layout of {root} cannot be recognised from what it holds ({abbreviate(inside)}): "
        f"give layout=, one of\n{_list_layouts()}"
    )


def open_folder(root: Path, layout: str, options: Mapping[str, Any]) -> ImageDataset:
    """The images of a folder, in a layout that is given or recognised."""
    if layout != "auto" and layout not in LAYOUTS:
        LAYOUTS.find(layout)
    where = LAYOUTS[layout].where if layout in LAYOUTS else ""
    try:
        if not root.is_dir():
            raise FileNotFoundError(f"there is no folder {root}")
        if not any(root.iterdir()):
            raise FileNotFoundError(f"the folder {root} is empty")
        if layout == "auto":
            # Only a flat folder has a table of labels, whatever else it looks like.
            layout = "flat" if "labels" in options else recognise_layout(root)
            where = LAYOUTS[layout].where
        return call_opener(LAYOUTS[layout].open, root, options, f"layout {layout!r}")
    except FileNotFoundError as error:
        if not where:
            raise
        raise FileNotFoundError(f"{error}: download {layout} from {where}") from error


def _list_layouts() -> str:
    return "\n".join(f"  {name}: {layout.about}" for name, layout in LAYOUTS.items())
