"""iWildCam in the layout of WILDS (Koh et al., ICML 2021): camera traps, 182 classes."""

from collections import Counter
from pathlib import Path

from rightly.checks import abbreviate
from rightly.datasets.csv_table import is_number, read_header, read_records
from rightly.datasets.decoding import ImageFiles
from rightly.datasets.image_dataset import ImageDataset

CLASS_COUNT = 182
COLUMNS = ("split", "filename", "y")
MAX_NAME = 255  # longer ones name no file; asked for one, Linux gives an error of its own


def open_iwildcam(root: Path, *, split: str | None = None) -> ImageDataset:
    """One split: train, id_val and id_test from the same cameras, val and test from others."""
    root = find_root(root)
    table = root / "metadata.csv"
    rows = read_records(table, COLUMNS)
    counts = Counter(row["split"] for row in rows)
    if split not in counts:
        raise ValueError(
            f"split of iWildCam must be one of those in {table}, "
            f"{dict(sorted(counts.items()))} (images in each), got {split!r}"
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
    header = read_header(find_root(root) / "metadata.csv")
    return {*COLUMNS, "location_remapped"} <= set(header)


def _measure_files(images: Path, names: tuple[str, ...]) -> tuple[int, ...]:
    missing = [name for name in names if len(name) > MAX_NAME or not (images / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of {len(names)} images named in metadata.csv are not in {images}: "
            f"{abbreviate(missing)}"
        )
    return tuple((images / name).stat().st_size for name in names)


def _check_label(text: str, table: Path) -> int:
    if not is_number(text) or int(text) >= CLASS_COUNT:
        raise ValueError(f"y in {table} must lie in 0..{CLASS_COUNT - 1}, got {text!r}")
    return int(text)


def _read_class_names(root: Path) -> tuple[str, ...]:
    """Species from categories.csv, where it is there and names all classes; numbers otherwise."""
    table = root / "categories.csv"
    names: dict[int, str] = {}
    if {"name", "y"} <= set(read_header(table)):
        for row in read_records(table, ("name", "y")):
            if row["name"] and is_number(row["y"]):
                names[int(row["y"])] = row["name"]
    return tuple(names.get(i, f"class {i}") for i in range(CLASS_COUNT))
