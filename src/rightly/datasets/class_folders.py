"""A folder per class, and what every other layout of picture files needs."""

import os
from collections.abc import Sequence
from pathlib import Path

from rightly.datasets.decoding import Files
from rightly.datasets.image_dataset import ImageDataset, few

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".pnm"}
)


def folders(
    root: Path, *, class_names: Sequence[str] | None = None, split: str | None = None
) -> ImageDataset:
    """A folder per class; classes are numbered in the sorted order of their folders."""
    root = part_of(root, split)
    found = folder_names(root)
    if not found:
        raise ValueError(
            f"{root} must hold a folder per class, but it holds no folder: "
            "for pictures without folders use layout='flat'"
        )
    order = _class_order(root, found, class_names)
    return by_folder(root, {name: order.index(name) for name in found}, order)


def by_folder(
    root: Path,
    class_of: dict[str, int],
    class_names: Sequence[str],
    *,
    kept_classes: tuple[tuple[int, ...], ...] | None = None,
    notes: tuple[str, ...] = (),
    border: int = 0,
) -> ImageDataset:
    """The pictures of these folders, labelled with the class of their folder."""
    pictures: dict[str, int] = {}
    labels: list[int] = []
    others: list[str] = []
    for folder in sorted(class_of):
        inside, left = pictures_in(root / folder)
        if not inside:
            raise ValueError(
                f"the class folder {root / folder} holds no pictures: remove it, and name all "
                "classes with class_names= if the classifier knows this one"
            )
        pictures |= {f"{folder}/{name}": size for name, size in inside.items()}
        labels += [class_of[folder]] * len(inside)
        others += [f"{folder}/{name}" for name in left]
    return ImageDataset(
        tuple(pictures),
        Files(root, tuple(pictures), border),
        labels,
        tuple(class_names),
        kept_classes,
        tuple(pictures.values()),
        notes + note_others(others),
    )


def folder_names(root: Path) -> list[str]:
    """The folders inside a folder, sorted; hidden ones are none of ours."""
    inside = (entry.name for entry in os.scandir(root) if entry.is_dir())
    return sorted(name for name in inside if not name.startswith("."))


def pictures_in(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Size of each picture under a folder by its sorted relative name, and the other files."""
    sizes: dict[str, int] = {}
    others: list[str] = []
    for place, inner, files in os.walk(folder, followlinks=True):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for file in files:
            path = Path(place, file)
            name = path.relative_to(folder).as_posix()
            if path.suffix.lower() in SUFFIXES and not file.startswith("."):
                sizes[name] = path.stat().st_size
            elif not file.startswith("."):
                others.append(name)
    return dict(sorted(sizes.items())), sorted(others)


def part_of(root: Path, split: str | None) -> Path:
    """The folder of one split, or the whole."""
    if split is None:
        return root
    if not (root / split).is_dir():
        raise ValueError(f"split must be one of {folder_names(root)} in {root}, got {split!r}")
    return root / split


def note_others(others: list[str]) -> tuple[str, ...]:
    """What to say of files that are no pictures."""
    return (f"{len(others)} files are no pictures: {few(others)}",) if others else ()


def _class_order(root: Path, found: list[str], class_names: Sequence[str] | None) -> list[str]:
    if class_names is not None:
        unknown = [name for name in found if name not in class_names]
        if unknown:
            raise ValueError(
                f"class_names must name every folder in {root}, but not: {few(unknown)}"
            )
        return list(class_names)
    # 10 sorts before 2 as text, and a gap is a class without pictures: both would shift labels.
    numbers = [int(name) for name in found if name.isdecimal()]
    if len(numbers) == len(found) and numbers != list(range(numbers[0], numbers[0] + len(found))):
        raise ValueError(
            f"the class folders in {root} are numbers but do not count up one by one when sorted "
            f"as text ({few(found)}): give class_names= with all classes in the classifier's "
            "order, or layout='imagenet-val' if they are numbers of ImageNet classes"
        )
    return found
