"""Data sets that others load: torch's, and those of Hugging Face, recognised by what they offer."""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rightly.datasets.decoding import UnreadableImage, load_pillow, to_image
from rightly.datasets.image_dataset import ImageDataset

if TYPE_CHECKING:
    import PIL.Image

IMAGE_COLUMNS = ("image", "img")
LABEL_COLUMNS = ("label", "labels")


def is_hugging_face(source: object) -> bool:
    """Whether this is a data set of Hugging Face, or a dictionary of its splits."""
    return hasattr(source, "column_names") and hasattr(source, "__getitem__")


def open_torch_dataset(
    source: Any, *, labels: Sequence[int] | None = None, class_names: Sequence[str] | None = None
) -> ImageDataset:
    """A map-style torch Dataset, or any sequence, of images or of pairs (image, label)."""
    if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")):
        raise TypeError(
            f"images must be a folder or a data set with a length, got {type(source).__name__}: "
            "an iterable one has no order to resume from"
        )
    if not len(source):
        raise ValueError("images must hold at least one image, got an empty data set")
    pairs = _is_pair(source[0])
    if pairs and labels is not None:
        raise ValueError("labels must be left out: the data set yields pairs (image, label)")
    items = DatasetItems(source, pairs)
    classes = class_names if class_names is not None else getattr(source, "classes", None)
    numbers = None if labels is None else [_check_label(y, i) for i, y in enumerate(labels)]
    return ImageDataset(
        tuple(str(i) for i in range(len(source))),
        items,
        (_find_labels(source) or LazyLabels(items)) if pairs else numbers,
        None if classes is None else tuple(str(name) for name in classes),
        None,
        (type(source).__name__, *_digest_samples(items, len(source))),
    )


def open_hugging_face(
    source: Any, *, split: str | None = None, class_names: Sequence[str] | None = None
) -> ImageDataset:
    """A `datasets.Dataset` with a column image (or img), and maybe one label (or labels)."""
    if isinstance(source, Mapping):
        if split not in source:
            raise ValueError(f"split must be one of {sorted(source)}, got {split!r}")
        source = source[split]
    elif split is not None:
        raise ValueError(f"split must be left out for one split of a data set, got {split!r}")
    if not hasattr(source, "__len__"):
        raise TypeError("images must be a data set with a length: load it without streaming")
    columns = list(source.column_names)
    image = _find_column(columns, IMAGE_COLUMNS)
    if image is None:
        raise ValueError(
            f"the data set must have a column {' or '.join(IMAGE_COLUMNS)}, got {columns}: "
            "rename yours with rename_column"
        )
    label = _find_column(columns, LABEL_COLUMNS)
    features = getattr(source, "features", None) or {}
    if class_names is None and label is not None:
        class_names = getattr(features.get(label), "names", None)
    # The column alone, so that no image is decoded for its label.
    labels = None if label is None else [_check_label(y, i) for i, y in enumerate(source[label])]
    reader = ImageColumn(source, image)
    own = getattr(source, "_fingerprint", None)
    content = (str(own),) if own else _digest_samples(reader, len(source))
    names = tuple(str(i) for i in range(len(source)))
    classes = None if class_names is None else tuple(class_names)
    return ImageDataset(names, reader, labels, classes, None, content)


@dataclass(frozen=True)
class DatasetItems:
    """Reads items of a torch Dataset, and keeps the labels that come with them."""

    source: Any
    pairs: bool
    labels: dict[int, int] = field(default_factory=dict)

    def __call__(self, i: int) -> "PIL.Image.Image | NDArray[np.uint8]":
        return to_image(self.item(i), str(i))

    def item(self, i: int) -> Any:
        """The i-th image as the data set yields it; its label is kept."""
        try:
            item = self.source[i]
        except (OSError, SyntaxError) as error:  # what Pillow raises inside the user's data set
            raise UnreadableImage(str(i), str(error)) from error
        if not self.pairs:
            return item
        self.labels[i] = _check_label(item[1], i)
        return item[0]


@dataclass(frozen=True)
class LazyLabels:
    """Labels that come only with the images: free once the image was read, else it is read."""

    items: DatasetItems

    def __len__(self) -> int:
        return len(self.items.source)

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"there are {len(self)} labels, got number {i}")
        if i not in self.items.labels:
            self.items.item(i)
        return self.items.labels[i]


@dataclass(frozen=True)
class ImageColumn:
    """Reads the images of a Hugging Face data set, decoded by it or left as bytes."""

    source: Any
    name: str

    def __call__(self, i: int) -> "PIL.Image.Image | NDArray[np.uint8]":
        try:
            value = self.source[i][self.name]
            if isinstance(value, Mapping):  # Image(decode=False)
                stored = value.get("bytes")
                value = load_pillow().open(io.BytesIO(stored) if stored else value["path"])
                value.load()
        except (OSError, SyntaxError) as error:
            raise UnreadableImage(str(i), str(error)) from error
        return to_image(value, str(i))


def _is_pair(item: Any) -> bool:
    if isinstance(item, Mapping):
        raise TypeError(
            f"the data set must yield images or pairs (image, label), got a dictionary of "
            f"{sorted(map(str, item))}: wrap it to yield pairs"
        )
    if not isinstance(item, (tuple, list)):
        return False
    if len(item) != 2:
        raise TypeError(
            f"the data set must yield images or pairs (image, label), got {len(item)} values"
        )
    return True


def _find_labels(source: Any) -> list[int] | None:
    """Labels that the data set holds ready, where they agree with what it yields."""
    inner, indices = getattr(source, "dataset", None), getattr(source, "indices", None)
    if inner is not None and indices is not None:  # torch.utils.data.Subset
        labels = _find_labels(inner)
        return None if labels is None else [labels[i] for i in indices]
    tensors = getattr(source, "tensors", None)  # torch.utils.data.TensorDataset
    targets = tensors[1] if tensors is not None else getattr(source, "targets", None)
    if targets is None or getattr(source, "target_transform", None) or len(targets) != len(source):
        return None
    values = targets.tolist() if isinstance(targets, Tensor) else list(targets)
    last = len(values) - 1
    agree = all(_check_label(source[i][1], i) == values[i] for i in {0, last})
    return [_check_label(value, i) for i, value in enumerate(values)] if agree else None


def _check_label(label: Any, i: int) -> int:
    single = isinstance(label, np.generic) or (isinstance(label, Tensor) and label.numel() == 1)
    value = label.item() if single else label
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"label {i} must be a whole number, the class of the image, got {label!r}")
    if value < 0:
        raise ValueError(
            f"label {i} must be a class number from 0, got {value}: "
            "remove the labels if they are unknown"
        )
    return value


def _find_column(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    present = [name for name in wanted if name in columns]
    if len(present) > 1:
        raise ValueError(
            f"the data set must have one of the columns {present}, got both: remove one"
        )
    return present[0] if present else None


def _digest_samples(read: Any, count: int) -> tuple[str, ...]:
    """Of three images: such a set has no files whose sizes could tell it from another."""
    digests = []
    for i in sorted({0, count // 2, count - 1}):
        try:
            image = cast("PIL.Image.Image", read(i))
            digests.append(hashlib.sha256(image.tobytes()).hexdigest())
        except UnreadableImage as error:
            digests.append(error.reason)
    return tuple(digests)
