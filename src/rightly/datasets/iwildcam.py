"""iWildCam in the layout of WILDS (Koh et al., ICML 2021): camera traps, 182 classes."""

import csv
from collections import Counter
from pathlib import Path

from rightly.datasets.decoding import ImageFiles
from rightly.datasets.image_dataset import ImageDataset, abbreviate

CLASS_COUNT = 182
COLUMNS = ("split", "filename", "y")


def open_iwildcam(root: Path, *, split: str | None = None) -> ImageDataset:
    """One split: train, id_val and id_test from the same cameras, val and test from others."""
    root = find_root(root)
    table = root / "metadata.csv"
    if not table.is_file():
        raise FileNotFoundError(f"there is no {table}")
    rows = _read_table(table)
    counts = Counter(row["split"] for row in rows)
    if split not in counts:
        raise ValueError(
            f"split of iWildCam must be one of {dict(sorted(counts.items()))} (images in each), "
            f"got {split!r}"
        )
    selected = [row for row in rows if row["split"] == split]
    names = tuple(row["filename"] for row in selected)
    images = root / "train"  # WILDS keeps the images of all splits there
    sizes = _measure_files(images, names)
    labels = [_check_label(row["y"], table) for row in selected]
    return ImageDataset(
        names, ImageFiles(images, names), labels, _read_class_names(root), None, sizes
    )


def find_root(root: Path) -> Path:
    """The folder of metadata.csv: the one given, or iwildcam_v2.0 inside it."""
    inner = root / "iwildcam_v2.0"
    return inner if inner.is_dir() else root


def recognise(root: Path) -> bool:
    """Whether the table has the columns that only this set has."""
    table = find_root(root) / "metadata.csv"
    if not table.is_file():
        return False
    with table.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), [])
    return {*COLUMNS, "location_remapped"} <= set(header)


def _read_table(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(
                f"{table} must have the columns {list(COLUMNS)}, but {missing} are missing: "
                f"it has {reader.fieldnames}"
            )
        return [{name: row[name] for name in COLUMNS} for row in reader]


def _measure_files(images: Path, names: tuple[str, ...]) -> tuple[int, ...]:
    missing = [name for name in names if not (images / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of {len(names)} images named in metadata.csv are not in {images}: "
            f"{abbreviate(missing)}"
        )
    return tuple((images / name).stat().st_size for name in names)


def _check_label(text: str, table: Path) -> int:
    if not text.isdecimal() or int(text) >= CLASS_COUNT:
        raise ValueError(f"y in {table} must lie in 0..{CLASS_COUNT - 1}, got {text!r}")
    return int(text)


def _read_class_names(root: Path) -> tuple[str, ...]:
    """Species from categories.csv, where it is there and names all classes; numbers otherwise."""
    table = root / "categories.csv"
    names: dict[int, str] = {}
    if table.is_file():
        with table.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                if row.get("name") and (row.get("y") or "").isdecimal():
                    names[int(row["y"])] = row["name"]
    return tuple(names.get(i, f"class {i}") for i in range(CLASS_COUNT))
