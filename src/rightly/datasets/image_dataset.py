"""A data set as collection sees it: names, labels, and images decoded one at a time.

`open_images` makes one from a folder, a torch Dataset or a Hugging Face one.
"""

import hashlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from rightly.checks import abbreviate

# One entry a class of the set: the classifier's classes that mean it, nearly always one.
KeptClasses = tuple[tuple[int, ...], ...]


@runtime_checkable
class ClassNumbers(Protocol):
    """A sequence of labels, which may come only with their images."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> int: ...
    def __iter__(self) -> Iterator[int]: ...


@final
@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images by number. Nothing is decoded before `read`, so that memory stays flat.

    `read(i)` gives the i-th image in RGB, as a Pillow image or as (h, w, 3) bytes where it was
    decoded before, or raises UnreadableImage. `content` tells sets with the same names apart
    without decoding: sizes of files, or digests. `notes` are for the user. Where the set has only
    some of the classifier's classes, `kept_classes` says which: labels count within them, and all
    logits, views included, go through `restrict`.
    """

    names: Sequence[str]
    read: Callable[[int], Any]
    labels: ClassNumbers | None = None
    class_names: tuple[str, ...] | None = None
    kept_classes: KeptClasses | None = None
    content: Sequence[int | str] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("an image set must hold at least one image, but none was found")
        doubled = [name for name, count in Counter(self.names).items() if count > 1]
        if doubled:
            raise ValueError(
                f"names of images must differ, but these occur twice: {abbreviate(doubled)}"
            )
        if self.labels is not None and len(self.labels) != len(self.names):
            raise ValueError(
                f"labels must be one for each of the {len(self.names)} images, "
                f"got {len(self.labels)}"
            )
        if isinstance(self.labels, (list, tuple)):
            self._check_labels(self.labels)

    def _check_labels(self, labels: Sequence[int]) -> None:
        low, high = min(labels), max(labels)
        count = None if self.class_names is None else len(self.class_names)
        if low < 0 or (count is not None and high >= count):
            raise ValueError(
                f"labels must lie in 0..{'' if count is None else count - 1} for the classes of "
                f"the set, got {low}..{high}: do they count from 1, or belong to other classes?"
            )

    def __len__(self) -> int:
        return len(self.names)

    def restrict(self, logits: Float[Tensor, "*rows c"]) -> Float[Tensor, "*rows k"]:
        """The logits of the classes that the set shares with the classifier.

        Where several of the classifier's classes mean one of the set (ObjectNet's bicycle is a
        mountain bike or a tandem), the largest logit stands for them: the predicted class stays
        the one the classifier put first, as the published evaluations of ObjectNet have it.
        """
        if self.kept_classes is None:
            return logits
        width = max(len(group) for group in self.kept_classes)
        # A group is filled up with its own first member, which cannot change its maximum.
        filled = [group + group[:1] * (width - len(group)) for group in self.kept_classes]
        return logits[..., torch.tensor(filled, device=logits.device)].amax(-1)

    def check_classes(self, class_count: int) -> None:
        """Refuses a classifier whose number of classes cannot fit these labels."""
        if self.kept_classes is not None:
            high = max(max(group) for group in self.kept_classes)
            if high >= class_count:
                raise ValueError(
                    f"this set shares classes up to number {high} with the classifier it was made "
                    f"for, but the classifier given has only {class_count}: use one trained for "
                    "that class list"
                )
            return
        if self.labels is None:
            return
        if self.class_names is not None and len(self.class_names) != class_count:
            raise ValueError(
                f"the set has {len(self.class_names)} classes but the classifier {class_count}: "
                "give class_names= with all names in the classifier's order, or another classifier"
            )
        if isinstance(self.labels, (list, tuple)) and max(self.labels) >= class_count:
            raise ValueError(
                f"labels must lie in 0..{class_count - 1} for the {class_count} classes of the "
                f"classifier, got {max(self.labels)}: do they count from 1?"
            )

    @cached_property
    def fingerprint(self) -> str:
        """Tells this set from others by names, labels, kept classes and sizes, without decoding."""
        digest = hashlib.sha256()
        labels = list(self.labels) if isinstance(self.labels, (list, tuple)) else None
        for part in (list(self.names), labels, self.kept_classes, list(self.content)):
            digest.update(json.dumps(part).encode())
        return digest.hexdigest()


def open_images(
    source: Any,
    *,
    layout: str = "auto",
    labels: str | os.PathLike[str] | Sequence[int] | None = None,
    class_names: Sequence[str] | None = None,
    split: str | None = None,
    severity: int | None = None,
) -> ImageDataset:
    """Open images: a folder in one of the LAYOUTS, a torch Dataset, a Hugging Face one, or opened.

    `layout="auto"` decides by marks that only one layout has, and asks where there are none.
    """
    # Openers are loaded here, because they all build on this module.
    all_options: dict[str, Any] = {
        "labels": labels,
        "class_names": class_names,
        "split": split,
        "severity": severity,
    }
    options = {name: value for name, value in all_options.items() if value is not None}
    if isinstance(source, (str, os.PathLike)):
        from rightly.datasets.registry import open_folder

        return open_folder(Path(source), layout, options)
    if layout != "auto":
        raise ValueError(f"layout is for folders: leave it out for a {type(source).__name__}")
    if isinstance(source, ImageDataset):
        return call_opener(lambda opened: opened, source, options, "images that are open already")
    from rightly.datasets import adapters

    if adapters.is_hugging_face(source):
        return call_opener(adapters.open_hugging_face, source, options, "a Hugging Face data set")
    return call_opener(adapters.open_torch_dataset, source, options, "a torch Dataset")


def call_opener(
    opener: Callable[..., ImageDataset], source: Any, options: Mapping[str, Any], kind: str
) -> ImageDataset:
    """Opens with the options given; those that the opener does not take are refused."""
    accepted = list(inspect.signature(opener).parameters)[1:]
    unused = [name for name in options if name not in accepted]
    if unused:
        raise ValueError(
            f"{', '.join(unused)} has no meaning for {kind}, which takes "
            f"{', '.join(accepted) or 'nothing else'}: leave it out"
        )
    return opener(source, **options)
