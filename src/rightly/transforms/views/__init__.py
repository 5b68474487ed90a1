"""Views: other looks at the same image, whose class a good classifier should not change.

Each takes images before normalisation. All are plain tensor operations that run on any device and
export to ONNX inside the classifier's graph. A random view draws from its seed and the image alone
(see image_tensors.py), so an image has the same view in any batch. Range is checked by whoever
collects: a look at the values cannot be exported.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rightly.registry import Registry
from rightly.transforms.image_tensors import Images
from rightly.transforms.views.colour import (
    autocontrast,
    color_jitter,
    grayscale,
    hflip_autocontrast,
)
from rightly.transforms.views.detail import (
    blur,
    gaussian_noise,
    hflip_sharpen,
    low_resolution,
    random_erasing,
    sharpen,
)
from rightly.transforms.views.geometry import (
    hflip,
    hflip_translation,
    rotation,
    rotation_90,
    rotation_back,
    translation,
    translation_back,
    zoom,
)

Transform = Callable[[Images], Images]


@dataclass(frozen=True)
class View:
    """Another look at images, by name: shape, range and type stay, and each image is alone."""

    name: str
    transform: Transform

    def __call__(self, images: Images) -> Images:
        return self.transform(images)


VIEWS: Registry[View] = Registry(
    "view",
    View,
    [  # the paper's three first, then the two it also tried, then our own
        View("rotation", rotation),
        View("grayscale", grayscale),
        View("color_jitter", color_jitter),
        View("gaussian_noise", gaussian_noise),
        View("random_erasing", random_erasing),
        View("rotation_90", rotation_90),
        View("hflip", hflip),
        View("translation", translation),
        View("zoom", zoom),
        View("blur", blur),
        View("translation_back", translation_back),
        View("autocontrast", autocontrast),
        View("sharpen", sharpen),
        View("rotation_back", rotation_back),
        View("low_resolution", low_resolution),
        View("hflip_translation", hflip_translation),
        View("hflip_autocontrast", hflip_autocontrast),
        View("hflip_sharpen", hflip_sharpen),
    ],
)
