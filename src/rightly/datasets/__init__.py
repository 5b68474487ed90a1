"""Images to look at: folders, published data sets, torch Datasets and Hugging Face's.

`open_images` turns any of them into an ImageDataset, which knows names and labels and decodes one
picture at a time. A new layout is an opener and a line in LAYOUTS.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rightly.datasets import adapters as datasets
from rightly.datasets.decoding import UnreadableImage as UnreadableImage
from rightly.datasets.decoding import converted_from as converted_from
from rightly.datasets.image_dataset import ImageDataset as ImageDataset
from rightly.datasets.layouts import LAYOUTS as LAYOUTS
from rightly.datasets.layouts import known_layouts, recognised


def open_images(
    source: Any,
    *,
    layout: str = "auto",
    labels: str | os.PathLike[str] | Sequence[int] | None = None,
    class_names: Sequence[str] | None = None,
    split: str | None = None,
    severity: int | None = None,
) -> ImageDataset:
    """The images of a folder in one of the LAYOUTS, of a torch Dataset or of a Hugging Face one.

    `layout="auto"` decides by marks that only one layout has, and asks where there are none.
    """
    given: dict[str, Any] = {
        "labels": labels,
        "class_names": class_names,
        "split": split,
        "severity": severity,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(source, (str, os.PathLike)):
        return _from_folder(Path(source), layout, given)
    if layout != "auto":
        raise ValueError(f"layout is for folders: leave it out for a {type(source).__name__}")
    if datasets.is_hugging_face(source):
        return _opened(datasets.hugging_face, source, given, "a Hugging Face data set")
    return _opened(datasets.torch_dataset, source, given, "a torch Dataset")


def _from_folder(root: Path, layout: str, given: dict[str, Any]) -> ImageDataset:
    if layout != "auto" and layout not in LAYOUTS:
        raise ValueError(f"layout must be 'auto' or one of\n{known_layouts()}\ngot {layout!r}")
    where = LAYOUTS[layout].where if layout in LAYOUTS else ""
    try:
        if not root.is_dir():
            raise FileNotFoundError(f"there is no folder {root}")
        if not any(root.iterdir()):
            raise FileNotFoundError(f"the folder {root} is empty")
        if layout == "auto":
            # Only a flat folder has a table of labels, whatever else it looks like.
            layout = "flat" if "labels" in given else recognised(root)
            where = LAYOUTS[layout].where
        return _opened(LAYOUTS[layout].open, root, given, f"layout {layout!r}")
    except FileNotFoundError as error:
        if not where:
            raise
        raise FileNotFoundError(f"{error}: {layout} can be had from {where}") from error


def _opened(
    opener: Callable[..., ImageDataset], source: Any, given: dict[str, Any], kind: str
) -> ImageDataset:
    accepted = list(inspect.signature(opener).parameters)[1:]
    unused = [name for name in given if name not in accepted]
    if unused:
        raise ValueError(
            f"{', '.join(unused)} has no meaning for {kind}, which takes "
            f"{', '.join(accepted) or 'nothing else'}: leave it out"
        )
    return opener(source, **given)
