"""CIFAR-10 and sets like it: 32-pixel images in rows of arrays, mapped rather than loaded."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

from rightly.checks import abbreviate
from rightly.datasets.cifar_pickle import read_batch
from rightly.datasets.class_folders import label_by_folder, list_folders
from rightly.datasets.decoding import load_pillow
from rightly.datasets.image_dataset import ImageDataset

if TYPE_CHECKING:
    import PIL.Image

ANIMALS = ["bird", "cat", "deer", "dog", "frog", "horse"]
CLASSES = ["airplane", "automobile", *ANIMALS, "ship", "truck"]
PER_SEVERITY = 10_000  # rows of each severity in a file of CIFAR-10-C: the test set, in order
RECORD = np.dtype([("label", "u1"), ("pixels", "u1", (3, 32, 32))])  # of the binary version
Pixels = UInt8[np.ndarray, "n 32 32 3"]


@dataclass(frozen=True)
class ArrayRows:
    """Reads images from files of (n, 32, 32, 3) bytes; holds paths, so workers map anew."""

    files: tuple[Path, ...]
    ends: tuple[int, ...]
    map_file: Callable[[Path], Pixels]
    first: int = 0

    def __call__(self, i: int) -> "PIL.Image.Image":
        if not 0 <= i < self.ends[-1]:
            raise IndexError(f"there are {self.ends[-1]} images, got number {i}")
        k = bisect_right(self.ends, i)
        row = i - (self.ends[k - 1] if k else 0) + self.first
        return load_pillow().fromarray(np.ascontiguousarray(self.map_file(self.files[k])[row]))


def open_cifar10(root: Path, *, split: str = "test") -> ImageDataset:
    """The binary version (.bin), or the Python version, whose pickles may hold plain data only."""
    if split not in ("train", "test"):
        raise ValueError(f"split of CIFAR-10 must be 'train' or 'test', got {split!r}")
    stems = ["test_batch"] if split == "test" else [f"data_batch_{i}" for i in range(1, 6)]
    home = find_batches(root)
    binary = (home / f"{stems[0]}.bin").is_file()
    files = [home / (f"{stem}.bin" if binary else stem) for stem in stems]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(
            f"there is no {abbreviate(missing)}, neither binary (.bin) nor Python"
        )
    labels = [(map_records(f)["label"] if binary else read_batch(f)[1]) for f in files]
    names = [
        f"{s}/{i:05d}" for s, part in zip(stems, labels, strict=True) for i in range(len(part))
    ]
    ends = tuple(accumulate(len(part) for part in labels))
    return _make_dataset(
        names,
        ArrayRows(tuple(files), ends, _map_binary if binary else _read_python),
        [int(label) for part in labels for label in part],
        files,
    )


def open_cifar10_1(root: Path, *, split: str = "v4") -> ImageDataset:
    """CIFAR-10.1 (Recht et al., 2018); v4 is the version in the paper's tables, v6 the newer."""
    home = root / "datasets" if (root / "datasets").is_dir() else root
    data, labels = home / f"cifar10.1_{split}_data.npy", home / f"cifar10.1_{split}_labels.npy"
    if split not in ("v4", "v6"):
        raise ValueError(f"split of CIFAR-10.1 must be 'v4' or 'v6', got {split!r}")
    for file in (data, labels):
        _check_present(file)
    count = len(map_pixels(data))
    names = [f"{split}/{i:05d}" for i in range(count)]
    return _make_dataset(
        names, ArrayRows((data,), (count,), map_pixels), read_labels(labels), [data]
    )


def open_cifar10_c(
    root: Path, *, split: str | None = None, severity: int | None = None
) -> ImageDataset:
    """One shift of CIFAR-10-C (`split` names its file), at one severity from 1 to 5 or at all."""
    _check_present(root / "labels.npy")
    shifts = sorted(file.stem for file in root.glob("*.npy") if file.stem != "labels")
    if split not in shifts:
        raise ValueError(f"split of CIFAR-10-C must be one of {shifts} in {root}, got {split!r}")
    if severity is not None and severity not in range(1, 6):
        raise ValueError(f"severity must be 1, 2, 3, 4 or 5, or None for all, got {severity!r}")
    data = root / f"{split}.npy"
    labels = read_labels(root / "labels.npy")
    if not len(map_pixels(data)) == len(labels) == 5 * PER_SEVERITY:
        raise ValueError(
            f"{data} and labels.npy must have {5 * PER_SEVERITY} rows, {PER_SEVERITY} for each "
            f"severity, got {len(map_pixels(data))} and {len(labels)}"
        )
    first = 0 if severity is None else PER_SEVERITY * (severity - 1)
    rows = range(first, len(labels) if severity is None else first + PER_SEVERITY)
    names = [f"{split}/{1 + i // PER_SEVERITY}/{i % PER_SEVERITY:05d}" for i in rows]
    read = ArrayRows((data,), (len(rows),), map_pixels, first)
    return _make_dataset(names, read, [labels[i] for i in rows], [data])


def open_cinic10(root: Path, *, split: str = "test") -> ImageDataset:
    """CINIC-10 (Darlow et al., 2018): a folder per class in each of train, valid and test."""
    if split not in ("train", "valid", "test"):
        raise ValueError(f"split of CINIC-10 must be 'train', 'valid' or 'test', got {split!r}")
    if not (root / split).is_dir():
        raise FileNotFoundError(f"there is no folder {root / split}")
    names = list_folders(root / split)
    if names != CLASSES:
        raise ValueError(f"{root / split} must hold the folders {CLASSES}, got {names}")
    return label_by_folder(root / split, {name: CLASSES.index(name) for name in names}, CLASSES)


def is_cifar10(root: Path) -> bool:
    """Whether a folder holds the batches of CIFAR-10."""
    home = find_batches(root)
    return any((home / name).is_file() for name in ("test_batch.bin", "test_batch"))


def is_cifar10_1(root: Path) -> bool:
    """Whether a folder holds the arrays of CIFAR-10.1."""
    return any(root.glob("cifar10.1_v*_data.npy")) or any(
        root.glob("datasets/cifar10.1_v*_data.npy")
    )


def is_cinic10(root: Path) -> bool:
    """Whether a folder holds the three splits of CINIC-10."""
    parts = [root / name for name in ("train", "valid", "test")]
    return all(part.is_dir() and list_folders(part) == CLASSES for part in parts)


def is_cifar10_c(root: Path) -> bool:
    """Whether a folder holds CIFAR-10-C, and not CIFAR-100-C."""
    # CIFAR-100-C has the same file names: only its labels, which reach 99, tell them apart.
    if not ((root / "labels.npy").is_file() and (root / "gaussian_noise.npy").is_file()):
        return False
    try:
        read_labels(root / "labels.npy")
    except ValueError:
        return False
    return True


def find_batches(root: Path) -> Path:
    """The folder of the batches: the one given, or the one that the archive unpacks to."""
    inner = (root / "cifar-10-batches-bin", root / "cifar-10-batches-py")
    return next((folder for folder in inner if folder.is_dir()), root)


def _make_dataset(
    names: list[str], read: ArrayRows, labels: Sequence[int], files: Sequence[Path]
) -> ImageDataset:
    content = tuple(file.stat().st_size for file in files)
    if len(labels) != len(names):
        raise ValueError(f"{files[0]} has {len(names)} images but its labels are {len(labels)}")
    return ImageDataset(tuple(names), read, list(labels), tuple(CLASSES), None, content)


def _check_present(file: Path) -> None:
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}")


@lru_cache(8)
def map_records(path: Path) -> NDArray[Any]:
    """Label and pixels of each image in a binary batch, mapped."""
    size = path.stat().st_size
    if not size or size % RECORD.itemsize:
        raise ValueError(
            f"{path} must be whole records of {RECORD.itemsize} bytes, got {size} bytes: "
            "it is truncated, or not a binary batch of CIFAR-10"
        )
    return np.memmap(path, RECORD, "r")


def _map_binary(path: Path) -> Pixels:
    return map_records(path)["pixels"].transpose(0, 2, 3, 1)


def _read_python(path: Path) -> Pixels:
    return read_batch(path)[0].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


@lru_cache(8)
def map_pixels(path: Path) -> Pixels:
    """Images of a .npy file, mapped."""
    pixels = _map_array(path)
    if pixels.dtype != np.uint8 or pixels.shape[1:] != (32, 32, 3):
        raise ValueError(
            f"{path} must be uint8 of shape (n, 32, 32, 3), got {pixels.dtype} {pixels.shape}"
        )
    return pixels


def read_labels(path: Path) -> list[int]:
    """Labels of ten classes from a .npy file."""
    labels = _map_array(path)
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or not len(labels):
        raise ValueError(f"{path} must be a row of integers, got {labels.dtype} {labels.shape}")
    if labels.max() >= len(CLASSES):
        raise ValueError(
            f"{path} must be the labels of ten classes, 0..9, got up to {labels.max()}: "
            "is this CIFAR-100?"
        )
    return [int(label) for label in labels]


def _map_array(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"{path} is not a whole .npy file of numbers ({error}); pickles are never loaded"
        ) from error
