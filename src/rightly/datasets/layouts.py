"""The layouts in which sets of images lie on disk: one line each, and what gives each away."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rightly.datasets import cifar, imagenet, iwildcam, objectnet
from rightly.datasets import class_folders as folders
from rightly.datasets import csv_folder as flat
from rightly.datasets.image_dataset import ImageDataset, few

SPLIT_NAMES = frozenset({"train", "training", "val", "valid", "validation", "test"})


@dataclass(frozen=True)
class Layout:
    """How a set lies on disk: what opens it, what gives it away, and where it can be had."""

    open: Callable[..., ImageDataset]
    recognise: Callable[[Path], bool]
    about: str
    where: str = ""


def _imagenet(name: str) -> Callable[[Path], bool]:
    return lambda root: imagenet.recognised(root) == name


def _is_cifar10(root: Path) -> bool:
    home = cifar.batches_home(root)
    return any((home / name).is_file() for name in ("test_batch.bin", "test_batch"))


def _is_cifar10_1(root: Path) -> bool:
    return any(root.glob("cifar10.1_v*_data.npy")) or any(
        root.glob("datasets/cifar10.1_v*_data.npy")
    )


def _is_cinic10(root: Path) -> bool:
    parts = [root / name for name in ("train", "valid", "test")]
    return all(part.is_dir() and folders.folder_names(part) == cifar.CLASSES for part in parts)


def _is_objectnet(root: Path) -> bool:
    home = objectnet.home(root)
    return (home / "mappings" / "folder_to_objectnet_label.json").is_file()


def _is_cifar10_c(root: Path) -> bool:
    # CIFAR-100-C has the same file names: only its labels, which reach 99, tell them apart.
    if not ((root / "labels.npy").is_file() and (root / "gaussian_noise.npy").is_file()):
        return False
    try:
        cifar.npy_labels(root / "labels.npy")
    except ValueError:
        return False
    return True


def _is_folders(root: Path) -> bool:
    found = folders.folder_names(root)
    if not found or SPLIT_NAMES & {name.lower() for name in found}:
        return False  # the parts of a set, not its classes
    if all(name in imagenet.wnids() for name in found):
        return False  # some ImageNet classes: numbered among 1000, or on their own?
    return all(
        any(file.suffix.lower() in folders.SUFFIXES for file in (root / name).iterdir())
        and not folders.folder_names(root / name)
        for name in found
    )


def _is_flat(root: Path) -> bool:
    files = [entry.name for entry in os.scandir(root) if entry.is_file()]
    pictures = any(Path(name).suffix.lower() in folders.SUFFIXES for name in files)
    return pictures and not folders.folder_names(root)


LAYOUTS: Mapping[str, Layout] = {
    "folders": Layout(folders.folders, _is_folders, "a folder per class, numbered in sorted order"),
    "flat": Layout(flat.flat, _is_flat, "one folder, with labels= a CSV of file name and label"),
    "imagenet-val": Layout(
        imagenet.imagenet,
        _imagenet("imagenet-val"),
        "1000 folders named by WordNet id or by class number",
        "https://image-net.org/download",
    ),
    "imagenet-a": Layout(
        imagenet.imagenet_subset,
        _imagenet("imagenet-a"),
        "200 folders named by WordNet id; logits restricted to them",
        "https://github.com/hendrycks/natural-adv-examples",
    ),
    "imagenet-r": Layout(
        imagenet.imagenet_subset,
        _imagenet("imagenet-r"),
        "200 folders named by WordNet id; logits restricted to them",
        "https://github.com/hendrycks/imagenet-r",
    ),
    "imagenet-sketch": Layout(
        imagenet.imagenet,
        _imagenet("imagenet-sketch"),
        "1000 folders named by WordNet id",
        "https://github.com/HaohanWang/ImageNet-Sketch",
    ),
    "objectnet": Layout(
        objectnet.objectnet,
        _is_objectnet,
        "images/ and mappings/; logits restricted to the 113 classes shared with ImageNet",
        "https://objectnet.dev",
    ),
    "cifar10": Layout(
        cifar.cifar10,
        _is_cifar10,
        "binary or Python batches; split= train or test",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "cifar10.1": Layout(
        cifar.cifar10_1,
        _is_cifar10_1,
        "pairs of .npy files; split= v4 or v6",
        "https://github.com/modestyachts/CIFAR-10.1",
    ),
    "cifar10-c": Layout(
        cifar.cifar10_c,
        _is_cifar10_c,
        ".npy files; split= the shift, severity= 1 to 5",
        "https://zenodo.org/records/2535967",
    ),
    "cinic10": Layout(
        cifar.cinic10,
        _is_cinic10,
        "train/, valid/ and test/ with a folder per class; split= one of them",
        "https://github.com/BayesWatch/cinic-10",
    ),
    "iwildcam": Layout(
        iwildcam.iwildcam,
        iwildcam.recognised,
        "WILDS: metadata.csv and train/; split= id_val, id_test, val, test or train",
        "https://wilds.stanford.edu/datasets/#iwildcam",
    ),
}


def known_layouts() -> str:
    """All layouts, for an error message."""
    return "\n".join(f"  {name}: {layout.about}" for name, layout in LAYOUTS.items())


def recognised(root: Path) -> str:
    """The layout of a folder, where marks that only one layout has settle it."""
    found = [name for name, layout in LAYOUTS.items() if layout.recognise(root)]
    # 1000 numbered folders are a folder per class as well: the published name says more.
    found = [name for name in found if name != "folders"] or found
    if len(found) == 1:
        return found[0]
    inside = sorted(path.name for path in root.iterdir())
    raise ValueError(
        f"the layout of {root} cannot be told from what it holds ({few(inside)}): "
        f"give layout=, one of\n{known_layouts()}"
    )
