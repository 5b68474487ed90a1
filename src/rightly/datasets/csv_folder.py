"""One folder of images, with a table of labels beside it."""

import os
from collections.abc import Sequence
from pathlib import Path

from rightly.checks import abbreviate
from rightly.datasets.class_folders import SUFFIXES, list_images, note_other_files
from rightly.datasets.csv_table import is_number, read_rows
from rightly.datasets.decoding import ImageFiles
from rightly.datasets.image_dataset import ImageDataset

FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "name", "id")
LABEL_COLUMNS = ("label", "labels", "class", "class_name", "target", "y")


def open_flat(
    root: Path,
    *,
    labels: str | os.PathLike[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> ImageDataset:
    """One folder, and a CSV of file name and label: `labels`, or labels.csv in the folder."""
    table = Path(labels) if labels is not None else root / "labels.csv"
    sizes, others = list_images(root)
    others = [name for name in others if root / name != table]
    if not sizes:
        raise ValueError(f"{root} holds no images; their names end in {sorted(SUFFIXES)}")
    names = list(sizes)
    if labels is None and not table.is_file():
        chosen = None if class_names is None else tuple(class_names)
        return _make_dataset(root, sizes, None, chosen, others)
    rows = _read_labels(table)
    without_file = [name for name in rows if name not in sizes]
    without_row = [name for name in names if name not in rows]
    if without_file or without_row:
        mismatched = without_file or without_row
        raise ValueError(
            f"{table} must have one row for each of the {len(names)} images in {root}, but "
            f"{len(mismatched)} {'rows have no image' if without_file else 'images have no row'}: "
            f"{abbreviate(mismatched)}"
        )
    numbers, chosen = _number_labels([rows[name] for name in names], class_names, table)
    return _make_dataset(root, sizes, numbers, chosen, others)


def _make_dataset(
    root: Path,
    sizes: dict[str, int],
    labels: list[int] | None,
    class_names: tuple[str, ...] | None,
    others: list[str],
) -> ImageDataset:
    return ImageDataset(
        tuple(sizes),
        ImageFiles(root, tuple(sizes)),
        labels,
        class_names,
        None,
        tuple(sizes.values()),
        note_other_files(others),
    )


def _read_labels(table: Path) -> dict[str, str]:
    """Label by file name, both as written."""
    rows = [[cell.strip() for cell in row] for row in read_rows(table) if any(row)]
    if not rows:
        raise ValueError(f"{table} must hold file names and labels, but it is empty")
    name_at, label_at = 0, 1
    # Names of images have a suffix and headings have none: this settles whether row 1 is one.
    if Path(rows[0][0]).suffix.lower() not in SUFFIXES:
        name_at, label_at = _find_columns(table, [cell.lower() for cell in rows.pop(0)])
    labels: dict[str, str] = {}
    for row in rows:
        if len(row) <= max(name_at, label_at) or not row[label_at]:
            raise ValueError(f"{table} must have a file name and a label in each row, got {row}")
        if row[name_at] in labels:
            raise ValueError(f"{table} must name each file once, but {row[name_at]} occurs twice")
        labels[row[name_at]] = row[label_at]
    return labels


def _find_columns(table: Path, header: list[str]) -> tuple[int, int]:
    names = [i for i, cell in enumerate(header) if cell in FILE_COLUMNS]
    labels = [i for i, cell in enumerate(header) if cell in LABEL_COLUMNS]
    if len(names) == 1 and len(labels) == 1:
        return names[0], labels[0]
    if len(header) == 2:
        return 0, 1
    raise ValueError(
        f"{table} must have one column of file names (called {', '.join(FILE_COLUMNS)}) and one of "
        f"labels (called {', '.join(LABEL_COLUMNS)}), got {header}"
    )


def _number_labels(
    written: list[str], class_names: Sequence[str] | None, table: Path
) -> tuple[list[int], tuple[str, ...] | None]:
    """Class numbers of labels written as numbers or as names."""
    numbers = all(is_number(label) for label in written)
    if class_names is None:
        if numbers:
            return [int(label) for label in written], None
        mixed = [label for label in written if label.lstrip("-").isdecimal()]
        if mixed:
            raise ValueError(
                f"labels in {table} must be all class numbers from 0 or all class names, "
                f"got both or negative numbers: {abbreviate(sorted(set(mixed)))}"
            )
        class_names = sorted(set(written))
    order = {name: i for i, name in enumerate(class_names)}
    unknown = sorted(set(written) - set(order))
    if unknown and not numbers:
        raise ValueError(
            f"labels in {table} must be among class_names, but not: {abbreviate(unknown)}"
        )
    return [int(label) if unknown else order[label] for label in written], tuple(class_names)
