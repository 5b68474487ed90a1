"""A folder per class, and what every other layout of image files needs."""

import os
from collections.abc import Sequence
from pathlib import Path

from rightly.checks import abbreviate
from rightly.datasets.decoding import ImageFiles
from rightly.datasets.image_dataset import ImageDataset

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".pnm"}
)


def open_folders(
    root: Path, *, class_names: Sequence[str] | None = None, split: str | None = None
) -> ImageDataset:
    """A folder per class; classes are numbered in the sorted order of their folders."""
    root = find_split(root, split)
    names = list_folders(root)
    if not names:
        raise ValueError(
            f"{root} must hold a folder per class, but it holds no folder: "
            "for images without folders use layout='flat'"
        )
    order = _order_classes(root, names, class_names)
    return label_by_folder(root, {name: order.index(name) for name in names}, order)


def label_by_folder(
    root: Path,
    class_of: dict[str, int],
    class_names: Sequence[str],
    *,
    kept_classes: tuple[tuple[int, ...], ...] | None = None,
    notes: tuple[str, ...] = (),
    border: int = 0,
) -> ImageDataset:
    """The images of these folders, labelled with the class of their folder."""
    sizes: dict[str, int] = {}
    labels: list[int] = []
    others: list[str] = []
    for folder in sorted(class_of):
        inside, left = list_images(root / folder)
        if not inside:
            raise ValueError(
                f"the class folder {root / folder} holds no images: remove it, and name all "
                "classes with class_names= if the classifier knows this one"
            )
        sizes |= {f"{folder}/{name}": size for name, size in inside.items()}
        labels += [class_of[folder]] * len(inside)
        others += [f"{folder}/{name}" for name in left]
    return ImageDataset(
        tuple(sizes),
        ImageFiles(root, tuple(sizes), border),
        labels,
        tuple(class_names),
        kept_classes,
        tuple(sizes.values()),
        notes + note_other_files(others),
    )


def list_folders(root: Path) -> list[str]:
    """The folders inside a folder, sorted; without hidden ones."""
    inside = (entry.name for entry in os.scandir(root) if entry.is_dir())
    return sorted(name for name in inside if not name.startswith("."))


def list_images(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Size of each image under a folder by its sorted relative name, and the other files."""
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


def find_split(root: Path, split: str | None) -> Path:
    """The folder of one split, or the whole."""
    if split is None:
        return root
    if not (root / split).is_dir():
        raise ValueError(f"split must be one of {list_folders(root)} in {root}, got {split!r}")
    return root / split


def note_other_files(others: list[str]) -> tuple[str, ...]:
    """The note on files that are no images."""
    return (f"{len(others)} files are not images: {abbreviate(others)}",) if others else ()


def _order_classes(root: Path, folders: list[str], class_names: Sequence[str] | None) -> list[str]:
    if class_names is not None:
        unknown = [name for name in folders if name not in class_names]
        if unknown:
            raise ValueError(
                f"class_names must name every folder in {root}, but not: {abbreviate(unknown)}; "
                "layout='imagenet-val' reads folders named by WordNet id or number of a class"
            )
        return list(class_names)
    # 10 sorts before 2 as text, and a gap is a class without images: both would shift labels.
    numbers = [int(name) for name in folders if name.isdecimal()]
    count = len(folders)
    if len(numbers) == count and numbers != list(range(numbers[0], numbers[0] + count)):
        raise ValueError(
            f"the class folders in {root} are numbers but do not count up one by one when sorted "
            f"as text ({abbreviate(folders)}): give class_names= with all classes in the "
            "classifier's order, or layout='imagenet-val' if they are numbers of ImageNet classes"
        )
    return folders
