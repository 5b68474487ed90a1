"""Synthetic shifts: what may happen to images between the test set and the world.

Each takes images before normalisation, a severity from 1 to 5 and a seed. Random ones draw from
the seed and the image alone (see image_tensors.py), so an image is shifted alike in any batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rightly.registry import Registry
from rightly.transforms.image_tensors import Images, check_images
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

Strength = int | float | tuple[int | float, ...]
Strengths = tuple[Strength, Strength, Strength, Strength, Strength]  # at severities 1 to 5

SMALL_SIDE = 64  # CIFAR has 32, Tiny ImageNet 64; ImageNet-C was made at 224


@dataclass(frozen=True)
class Shift:
    """A change of images by name, with its strengths at severities 1 to 5.

    `transform(images, *strength, seed=seed)` gets the strength of the severity asked for: of
    `large` where the shorter side has more than 64 pixels and `large` is given, else of `small`.
    Without strengths it gets the severity itself.
    """

    name: str
    transform: Callable[..., Images]
    small: Strengths = (1, 2, 3, 4, 5)
    large: Strengths | None = None

    def __call__(self, images: Images, severity: int, seed: int = 0) -> Images:
        check_images(images)
        strength = self.strength(severity, min(images.shape[2:]))
        return self.transform(images, *strength, seed=seed)

    def strength(self, severity: int, side: int) -> tuple[int | float, ...]:
        """What `transform` is given at a severity, for images whose shorter side is so long."""
        if severity not in range(1, 6):
            raise ValueError(f"severity must be 1, 2, 3, 4 or 5, got {severity}")
        strengths = self.large if self.large and side > SMALL_SIDE else self.small
        strength = strengths[severity - 1]
        return strength if isinstance(strength, tuple) else (strength,)


SHIFTS: Registry[Shift] = Registry(
    "shift",
    Shift,
    [
        # Published values, small of CIFAR-10-C and large of ImageNet-C: Hendrycks and Dietterich,
        # "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR
        # 2019, and the authors' code.
        Shift(  # sigma
            "gaussian_noise",
            gaussian_noise,
            (0.04, 0.06, 0.08, 0.09, 0.10),
            (0.08, 0.12, 0.18, 0.26, 0.38),
        ),
        Shift(  # photons at full brightness
            "shot_noise",
            shot_noise,
            (500.0, 250.0, 100.0, 75.0, 50.0),
            (60.0, 25.0, 12.0, 5.0, 3.0),
        ),
        Shift(  # share of values replaced
            "impulse_noise",
            impulse_noise,
            (0.01, 0.02, 0.03, 0.05, 0.07),
            (0.03, 0.06, 0.09, 0.17, 0.27),
        ),
        Shift(  # sigma in pixels
            "gaussian_blur", gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1.0), (1.0, 2.0, 3.0, 4.0, 6.0)
        ),
        Shift(  # radius, edge
            "defocus_blur",
            defocus_blur,
            ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)),
            ((3.0, 0.1), (4.0, 0.5), (6.0, 0.5), (8.0, 0.5), (10.0, 0.5)),
        ),
        Shift(  # radius, sigma
            "motion_blur",
            motion_blur,
            ((6.0, 1.0), (6.0, 1.5), (6.0, 2.0), (8.0, 2.0), (9.0, 2.5)),
            ((10.0, 3.0), (15.0, 5.0), (15.0, 8.0), (15.0, 12.0), (20.0, 15.0)),
        ),
        Shift(  # share of the contrast kept
            "contrast", contrast, (0.75, 0.5, 0.4, 0.3, 0.15), (0.4, 0.3, 0.2, 0.1, 0.05)
        ),
        Shift(  # added to V of HSV
            "brightness", brightness, (0.05, 0.1, 0.15, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5)
        ),
        Shift(  # scale, add
            "saturation",
            saturation,
            ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
            ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
        ),
        Shift(  # share of the side kept
            "pixelate", pixelate, (0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25)
        ),
        Shift(  # quality
            "jpeg", jpeg, (80.0, 65.0, 58.0, 50.0, 40.0), (25.0, 18.0, 15.0, 10.0, 7.0)
        ),
        # Sigma of the blur, pixels that one may stray, how often. The small ones are in the order
        # of the damage they do: more blur smooths what displacement roughens, and CIFAR-10-C's own
        # order (0.05, 0.25, 0.4 once, then 0.25, 0.4 twice) makes 3 and 5 the milder ones.
        Shift(
            "glass",
            glass,
            ((0.4, 1, 1), (0.25, 1, 1), (0.05, 1, 1), (0.4, 1, 2), (0.25, 1, 2)),
            ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        ),
        # Our own choice, for lack of published ones: relative to the image, so one row serves all
        # sizes.
        Shift("rotation", rotation, (10.0, 20.0, 30.0, 45.0, 60.0)),  # degrees
        Shift("zoom_out", zoom_out, (0.9, 0.8, 0.7, 0.6, 0.5)),  # side of the shrunken image
        Shift("posterise", posterise, (5.0, 4.0, 3.0, 2.0, 1.0)),  # bits kept of 8
        Shift("sketch", sketch, (0.2, 0.4, 0.6, 0.8, 1.0)),  # from photograph to drawing
        Shift("haze", haze, (0.25, 0.35, 0.45, 0.55, 0.65)),  # share of the light that is haze
        Shift("solarise", solarise, (224.0, 192.0, 160.0, 96.0, 0.0)),  # 8-bit, inverted above
        # share of the side a place may move
        Shift("elastic", elastic, (0.04, 0.06, 0.09, 0.12, 0.15)),
        Shift("shear", shear, (0.15, 0.3, 0.45, 0.6, 0.8)),  # width gained for each height
        Shift(  # flakes, veil
            "snow", snow, ((0.01, 0.05), (0.02, 0.1), (0.03, 0.15), (0.05, 0.2), (0.08, 0.25))
        ),
        Shift("occlusion", occlusion, (0.1, 0.15, 0.2, 0.3, 0.4)),  # share of the area covered
    ],
)
# Shift augmentation: different in kind, and strong enough to make a classifier err.
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


def kind(name: str) -> str:
    """What happens to images, however badly: "gaussian_blur" for "gaussian_blur:3"."""
    return name.partition(":")[0]
