"""Images to classify: folders, published data sets, torch Datasets and Hugging Face's.

`open_images` turns any of them into an ImageDataset, which knows names and labels and decodes one
image at a time. The modules load when a name is first used: decoding alone needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightly.datasets.decoding import UnreadableImage as UnreadableImage
    from rightly.datasets.image_dataset import ImageDataset as ImageDataset
    from rightly.datasets.image_dataset import open_images as open_images
    from rightly.datasets.registry import LAYOUTS as LAYOUTS
    from rightly.datasets.registry import Layout as Layout

_HOMES = {
    "UnreadableImage": "decoding",
    "ImageDataset": "image_dataset",
    "LAYOUTS": "registry",
    "Layout": "registry",
    "open_images": "image_dataset",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
