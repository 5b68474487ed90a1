"""Synthetic shifts: what may happen to images between the test set and the world.

Each takes images before normalisation, a severity from 1 to 5 and a seed. Random ones draw from
the seed and the image alone (see draws.py), so an image is shifted alike in any batch.
"""

from collections.abc import Callable

from rightly.transforms.image_tensors import Images
from rightly.transforms.shifts.blur import defocus_blur, gaussian_blur, glass, motion_blur
from rightly.transforms.shifts.colour import (
    brightness,
    contrast,
    haze,
    posterise,
    saturation,
    solarise,
)
from rightly.transforms.shifts.digital import jpeg, pixelate, sketch
from rightly.transforms.shifts.geometry import elastic, rotation, shear, zoom_out
from rightly.transforms.shifts.noise import gaussian_noise, impulse_noise, shot_noise
from rightly.transforms.shifts.obstacles import occlusion, snow

Shift = Callable[[Images, int, int], Images]

SHIFTS: dict[str, Shift] = {
    "gaussian_noise": gaussian_noise,
    "shot_noise": shot_noise,
    "impulse_noise": impulse_noise,
    "gaussian_blur": gaussian_blur,
    "defocus_blur": defocus_blur,
    "motion_blur": motion_blur,
    "contrast": contrast,
    "brightness": brightness,
    "saturation": saturation,
    "pixelate": pixelate,
    "jpeg": jpeg,
    "rotation": rotation,
    "zoom_out": zoom_out,
    "posterise": posterise,
    "sketch": sketch,
    "glass": glass,
    "haze": haze,
    "solarise": solarise,
    "elastic": elastic,
    "shear": shear,
    "snow": snow,
    "occlusion": occlusion,
}
# What to rehearse: different in kind, and strong enough to make a classifier err.
STANDARD_SHIFTS = (
    "gaussian_noise:4",
    "gaussian_blur:4",
    "contrast:4",
    "posterise:4",
    "rotation:4",
    "glass:4",
    "elastic:4",
    "snow:4",
)


def shift(name: str) -> Shift:
    """The shift of that name."""
    if name not in SHIFTS:
        raise ValueError(f"there is no shift {name!r}; there are {', '.join(SHIFTS)}")
    return SHIFTS[name]


def kind(name: str) -> str:
    """What happens to images, however badly: "gaussian_blur" for "gaussian_blur:3"."""
    return name.partition(":")[0]
