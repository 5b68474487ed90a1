"""Data sets that others load: torch's, and those of Hugging Face, told by what they offer."""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rightly.datasets.decoding import UnreadableImage, as_picture, pillow
from rightly.datasets.image_dataset import ImageDataset

if TYPE_CHECKING:
    import PIL.Image

IMAGE_COLUMNS = ("image", "img")
LABEL_COLUMNS = ("label", "labels")


def is_hugging_face(source: object) -> bool:
    """Whether this is a data set of Hugging Face, or a dictionary of its splits."""
    return hasattr(source, "column_names") and hasattr(source, "__getitem__")


def torch_dataset(
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
    items = Items(source, pairs)
    classes = class_names if class_names is not None else getattr(source, "classes", None)
    given = None if labels is None else [_whole(label, i) for i, label in enumerate(labels)]
    return ImageDataset(
        tuple(str(i) for i in range(len(source))),
        items,
        (_known_labels(source) or LabelsOnReading(items)) if pairs else given,
        None if classes is None else tuple(str(name) for name in classes),
        None,
        (type(source).__name__, *_digests(items, len(source))),
    )


def hugging_face(
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
    image = _column(columns, IMAGE_COLUMNS)
    if image is None:
        raise ValueError(
            f"the data set must have a column {' or '.join(IMAGE_COLUMNS)}, got {columns}: "
            "rename yours with rename_column"
        )
    label = _column(columns, LABEL_COLUMNS)
    features = getattr(source, "features", None) or {}
    if class_names is None and label is not None:
        class_names = getattr(features.get(label), "names", None)
    # The column alone, so that no picture is decoded for its label.
    labels = None if label is None else [_whole(y, i) for i, y in enumerate(source[label])]
    reader = Column(source, image)
    own = getattr(source, "_fingerprint", None)
    content = (str(own),) if own else _digests(reader, len(source))
    names = tuple(str(i) for i in range(len(source)))
    classes = None if class_names is None else tuple(class_names)
    return ImageDataset(names, reader, labels, classes, None, content)


@dataclass(frozen=True)
class Items:
    """Reads items of a torch Dataset, and keeps the labels that come with them."""

    source: Any
    pairs: bool
    seen: dict[int, int] = field(default_factory=dict)

    def __call__(self, i: int) -> "PIL.Image.Image | NDArray[np.uint8]":
        return as_picture(self.item(i), str(i))

    def item(self, i: int) -> Any:
        """The i-th image as the data set yields it; its label is kept."""
        try:
            item = self.source[i]
        except (OSError, SyntaxError) as error:  # what Pillow raises inside the user's data set
            raise UnreadableImage(str(i), str(error)) from error
        if not self.pairs:
            return item
        self.seen[i] = _whole(item[1], i)
        return item[0]


@dataclass(frozen=True)
class LabelsOnReading:
    """Labels that only come with the pictures: free once the picture was read, else read for."""

    items: Items

    def __len__(self) -> int:
        return len(self.items.source)

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"there are {len(self)} labels, got number {i}")
        if i not in self.items.seen:
            self.items.item(i)
        return self.items.seen[i]


@dataclass(frozen=True)
class Column:
    """Reads the images of a Hugging Face data set, decoded by it or left as bytes."""

    source: Any
    name: str

    def __call__(self, i: int) -> "PIL.Image.Image | NDArray[np.uint8]":
        try:
            value = self.source[i][self.name]
            if isinstance(value, Mapping):  # Image(decode=False)
                stored = value.get("bytes")
                value = pillow().open(io.BytesIO(stored) if stored else value["path"])
                value.load()
        except (OSError, SyntaxError) as error:
            raise UnreadableImage(str(i), str(error)) from error
        return as_picture(value, str(i))


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


def _known_labels(source: Any) -> list[int] | None:
    """Labels that the data set holds ready, where they agree with what it yields."""
    inner, indices = getattr(source, "dataset", None), getattr(source, "indices", None)
    if inner is not None and indices is not None:  # torch.utils.data.Subset
        known = _known_labels(inner)
        return None if known is None else [known[i] for i in indices]
    tensors = getattr(source, "tensors", None)  # torch.utils.data.TensorDataset
    held = tensors[1] if tensors is not None else getattr(source, "targets", None)
    if held is None or getattr(source, "target_transform", None) or len(held) != len(source):
        return None
    values = held.tolist() if isinstance(held, Tensor) else list(held)
    last = len(values) - 1
    agree = all(_whole(source[i][1], i) == values[i] for i in {0, last})
    return [_whole(value, i) for i, value in enumerate(values)] if agree else None


def _whole(label: Any, i: int) -> int:
    single = isinstance(label, np.generic) or (isinstance(label, Tensor) and label.numel() == 1)
    value = label.item() if single else label
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"label {i} must be a whole number, the class of the image, got {label!r}")
    if value < 0:
        raise ValueError(
            f"label {i} must be a class number from 0, got {value}: "
            "remove the labels if they are not known"
        )
    return value


def _column(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    found = [name for name in wanted if name in columns]
    if len(found) > 1:
        raise ValueError(f"the data set must have one of the columns {found}, got both: remove one")
    return found[0] if found else None


def _digests(read: Any, count: int) -> tuple[str, ...]:
    """Of three pictures: such a set has no files whose sizes could tell it from another."""
    found = []
    for i in sorted({0, count // 2, count - 1}):
        try:
            picture = cast("PIL.Image.Image", read(i))
            found.append(hashlib.sha256(picture.tobytes()).hexdigest())
        except UnreadableImage as error:
            found.append(error.reason)
    return tuple(found)
