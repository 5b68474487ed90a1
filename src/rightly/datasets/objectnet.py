"""ObjectNet (Barbu et al., NeurIPS 2019), read through its own mapping files."""

from pathlib import Path
from typing import Any

from rightly.checks import abbreviate
from rightly.datasets.class_folders import label_by_folder, list_folders, list_images
from rightly.datasets.image_dataset import ImageDataset
from rightly.files import parse_json

# Every image has a red frame, so that training on the test set would show; the publishers ask
# to cut two pixels off before use.
BORDER = 2


def open_objectnet(root: Path) -> ImageDataset:
    """The classes that ImageNet has too (113 as published); the others are left out, and noted."""
    root = find_root(root)
    shared = _map_shared_classes(root / "mappings")
    folders = list_folders(root / "images")
    mapped = set(_read_texts(root / "mappings" / "folder_to_objectnet_label.json"))
    unmapped = [name for name in folders if name not in mapped]
    if unmapped:
        raise ValueError(
            f"{root}/mappings/folder_to_objectnet_label.json must name every folder in "
            f"{root}/images, but not: {abbreviate(unmapped)}"
        )
    order = sorted(shared)
    class_of = {folder: i for i, folder in enumerate(order) if folder in folders}
    if not class_of:
        raise ValueError(
            f"{root}/images holds no class that ImageNet has too, got: {abbreviate(folders)}"
        )
    others = [folder for folder in folders if folder not in shared]
    count = sum(len(list_images(root / "images" / folder)[0]) for folder in others)
    note = f"{count} images of {len(others)} classes that ImageNet does not have are left out"
    return label_by_folder(
        root / "images",
        class_of,
        order,
        kept_classes=tuple(shared[folder] for folder in order),
        notes=(note,) if others else (),
        border=BORDER,
    )


def recognise(root: Path) -> bool:
    """Whether a folder has the mapping files of ObjectNet."""
    home = find_root(root)
    return (home / "mappings" / "folder_to_objectnet_label.json").is_file()


def find_root(root: Path) -> Path:
    """The folder that holds images/ and mappings/: the one given, or objectnet-1.0 inside it."""
    inner = root / "objectnet-1.0"
    return inner if (inner / "mappings").is_dir() else root


def _map_shared_classes(mappings: Path) -> dict[str, tuple[int, ...]]:
    """For each folder of a shared class, the ImageNet classes (0..999) that mean it."""
    folder_of = {v: k for k, v in _read_texts(mappings / "folder_to_objectnet_label.json").items()}
    line_of_number = _read_numbers(mappings / "pytorch_to_imagenet_2012_id.json")
    lines = _read_text(mappings / "imagenet_to_label_2012_v2").splitlines()
    first = min(line_of_number.values())
    if sorted(line_of_number.values()) != list(range(first, first + len(lines))):
        raise ValueError(
            f"{mappings}/pytorch_to_imagenet_2012_id.json must lead to each of the {len(lines)} "
            "lines of imagenet_to_label_2012_v2 once: take both from the same download"
        )
    number_of_label = {
        lines[line - first].strip(): number for number, line in line_of_number.items()
    }
    shared = {}
    for label, meanings in _read_texts(mappings / "objectnet_to_imagenet_1k.json").items():
        labels = [meaning.strip() for meaning in meanings.split("; ")]
        unknown = [meaning for meaning in labels if meaning not in number_of_label]
        if unknown or label not in folder_of:
            raise ValueError(
                f"{mappings} must explain the class {label!r}, but has nothing on: "
                f"{abbreviate(unknown or [label])}"
            )
        shared[folder_of[label]] = tuple(sorted(number_of_label[name] for name in labels))
    return shared


def _read_texts(path: Path) -> dict[str, str]:
    table = _read_table(path)
    if not all(isinstance(value, str) for value in table.values()):
        raise ValueError(f"{path} must map names to names, as the download does")
    return table


def _read_numbers(path: Path) -> dict[int, int]:
    try:
        return {int(key): int(value) for key, value in _read_table(path).items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} must map numbers to numbers: {error}") from error


def _read_table(path: Path) -> dict[str, Any]:
    try:
        table = parse_json(_read_text(path))
        if not isinstance(table, dict) or not table:
            raise ValueError(f"it holds {str(table)[:60]}, not a table")
        return table
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, as the download has it: {error}") from error


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be in UTF-8: {error}") from error
