"""ImageNet and the sets that share its classes, a folder per class named by its WordNet id.

Classes are numbered 0..999 in the sorted order of their ids, as every published classifier has it.
"""

import hashlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from rightly.checks import abbreviate
from rightly.datasets.class_folders import find_split, label_by_folder, list_folders, list_images
from rightly.datasets.image_dataset import ImageDataset

PUBLISHED_SUBSET = 200  # classes in ImageNet-A and in ImageNet-R
# Of the sorted ids, one a line: which of the two sets a folder is, without two lists of 200.
DIGESTS = {"f6aa4b23244554d9": "imagenet-a", "e19a59d84e3746fa": "imagenet-r"}


@lru_cache
def read_wnids() -> tuple[str, ...]:
    """WordNet ids of the 1000 classes of ILSVRC 2012, in order."""
    listed = files("rightly.datasets").joinpath("imagenet_wnids.txt")
    return tuple(listed.read_text(encoding="utf-8").split())


@lru_cache
def read_imagenet_names() -> tuple[str, ...]:
    """Names of the 1000 classes, in order: the first lemma of each synset in WordNet.

    WordNet 3.0 (Princeton University, 2006), by way of timm's imagenet_synset_to_lemma.txt; the
    two cranes, maillots and Cardigans are told apart by a word in parentheses.
    """
    listed = files("rightly.datasets").joinpath("imagenet_names.txt")
    return tuple(listed.read_text(encoding="utf-8").splitlines())


def open_imagenet(root: Path, *, split: str | None = None) -> ImageDataset:
    """Some or all of the 1000 classes, in folders named by WordNet id or by class number."""
    root = find_split(root, split)
    folders = list_folders(root)
    if folders and all(name.isdecimal() for name in folders):
        beyond = [name for name in folders if int(name) >= len(read_wnids())]
        if beyond or len({int(name) for name in folders}) < len(folders):
            raise ValueError(
                f"folders in {root} must be class numbers 0..999, each once, "
                f"got {abbreviate(beyond or folders)}"
            )
        return label_by_folder(root, {name: int(name) for name in folders}, read_imagenet_names())
    return label_by_folder(root, _number_folders(root, folders), read_imagenet_names())


def open_imagenet_subset(root: Path) -> ImageDataset:
    """The classes whose folders are there; logits are restricted to them."""
    numbers = _number_folders(root, list_folders(root))
    kept = sorted(numbers.values())
    notes: tuple[str, ...] = ()
    if len(kept) != PUBLISHED_SUBSET:
        notes = (
            f"{root} holds {len(kept)} classes, not the {PUBLISHED_SUBSET} published: logits are "
            "restricted to those found, which makes the task easier",
        )
    return label_by_folder(
        root,
        {name: kept.index(number) for name, number in numbers.items()},
        [read_imagenet_names()[number] for number in kept],
        kept_classes=tuple((number,) for number in kept),
        notes=notes,
    )


def recognise(root: Path) -> str | None:
    """Which of the sets a folder is, if all of its classes are there to tell."""
    folders = list_folders(root)
    if len(folders) == len(read_wnids()):
        numbered = [f"{i:04d}" for i in range(len(read_wnids()))]
        if tuple(folders) != read_wnids() and folders != numbered:
            return None
        drawn = any(name.startswith("sketch_") for name in list_images(root / folders[0])[0])
        return "imagenet-sketch" if drawn else "imagenet-val"
    return DIGESTS.get(hashlib.sha256("\n".join(folders).encode()).hexdigest()[:16])


def _number_folders(root: Path, folders: list[str]) -> dict[str, int]:
    numbers = {name: i for i, name in enumerate(read_wnids())}
    if not folders:
        raise FileNotFoundError(f"there is no folder named by an ImageNet class in {root}")
    unknown = [name for name in folders if name not in numbers]
    if unknown:
        raise ValueError(
            f"folders in {root} must be named by the ids of ImageNet classes, such as n01440764, "
            f"but not: {abbreviate(unknown)}"
        )
    return {name: numbers[name] for name in folders}
