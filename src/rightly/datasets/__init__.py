"""Images to classify: folders, published data sets, torch Datasets and Hugging Face's.

`open_images` turns any of them into an ImageDataset, which knows names and labels and decodes one
image at a time. The modules load when a name is first used: decoding alone needs no torch.
"""

from typing import TYPE_CHECKING

from rightly.optional import lazy_names

if TYPE_CHECKING:
    from rightly.datasets.decoding import UnreadableImage as UnreadableImage
    from rightly.datasets.image_dataset import ImageDataset as ImageDataset
    from rightly.datasets.image_dataset import open_images as open_images
    from rightly.datasets.imagenet import read_imagenet_names as read_imagenet_names
    from rightly.datasets.registry import LAYOUTS as LAYOUTS
    from rightly.datasets.registry import Layout as Layout

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "decoding": ("UnreadableImage",),
        "image_dataset": ("ImageDataset", "open_images"),
        "imagenet": ("read_imagenet_names",),
        "registry": ("LAYOUTS", "Layout"),
    },
)
