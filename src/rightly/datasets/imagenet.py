"""ImageNet and the sets that share its classes, a folder per class named by its WordNet id.

Classes are numbered 0..999 in the sorted order of their ids, as every published classifier has it.
"""

import hashlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from rightly.datasets.class_folders import by_folder, folder_names, part_of, pictures_in
from rightly.datasets.image_dataset import ImageDataset, few

PUBLISHED_SUBSET = 200  # classes in ImageNet-A and in ImageNet-R
# Of the sorted ids, one a line: which of the two sets a folder is, without two lists of 200.
DIGESTS = {"f6aa4b23244554d9": "imagenet-a", "e19a59d84e3746fa": "imagenet-r"}


@lru_cache
def wnids() -> tuple[str, ...]:
    """WordNet ids of the 1000 classes of ILSVRC 2012, in order."""
    return tuple(files("rightly.datasets").joinpath("imagenet_wnids.txt").read_text().split())


def imagenet(root: Path, *, split: str | None = None) -> ImageDataset:
    """Some or all of the 1000 classes, in folders named by WordNet id or by class number."""
    root = part_of(root, split)
    found = folder_names(root)
    if found and all(name.isdecimal() for name in found):
        off = [name for name in found if int(name) >= len(wnids())]
        if off or len({int(name) for name in found}) < len(found):
            raise ValueError(
                f"folders in {root} must be class numbers 0..999, each once, got {few(off)}"
            )
        return by_folder(root, {name: int(name) for name in found}, wnids())
    return by_folder(root, _class_numbers(root, found), wnids())


def imagenet_subset(root: Path) -> ImageDataset:
    """The classes whose folders are there; logits are restricted to them."""
    numbers = _class_numbers(root, folder_names(root))
    kept = sorted(numbers.values())
    notes: tuple[str, ...] = ()
    if len(kept) != PUBLISHED_SUBSET:
        notes = (
            f"{root} holds {len(kept)} classes, not the {PUBLISHED_SUBSET} published: logits are "
            "restricted to those found, which makes the task easier",
        )
    return by_folder(
        root,
        {name: kept.index(number) for name, number in numbers.items()},
        [wnids()[number] for number in kept],
        kept_classes=tuple((number,) for number in kept),
        notes=notes,
    )


def recognised(root: Path) -> str | None:
    """Which of the sets a folder is, if all of its classes are there to tell."""
    found = folder_names(root)
    if len(found) == len(wnids()):
        numbered = [f"{i:04d}" for i in range(len(wnids()))]
        if tuple(found) != wnids() and found != numbered:
            return None
        drawn = any(name.startswith("sketch_") for name in pictures_in(root / found[0])[0])
        return "imagenet-sketch" if drawn else "imagenet-val"
    return DIGESTS.get(hashlib.sha256("\n".join(found).encode()).hexdigest()[:16])


def _class_numbers(root: Path, found: list[str]) -> dict[str, int]:
    numbers = {name: i for i, name in enumerate(wnids())}
    if not found:
        raise FileNotFoundError(f"there is no folder named by an ImageNet class in {root}")
    unknown = [name for name in found if name not in numbers]
    if unknown:
        raise ValueError(
            f"folders in {root} must be named by the ids of ImageNet classes, such as n01440764, "
            f"but not: {few(unknown)}"
        )
    return {name: numbers[name] for name in found}
