"""What a classifier wants done to an image: resize, crop and normalisation.

torch is imported inside functions: servers resize and crop in environments without it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from rightly.checks import Schema, check_choice, check_table, is_number, is_text, or_null
from rightly.optional import require

if TYPE_CHECKING:
    import PIL.Image
    import torch

# Pillow's own numbers, so that no import of Pillow is needed to know them.
INTERPOLATIONS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
ORIENTATIONS = ("exif", "stored")
ORIENTATION_TAG = 0x0112
# What turns an image upright, by the value of that tag: numbers of Pillow's Transpose.
TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """Geometry, done once when an image is decoded, and normalisation, done after the views.

    `size` (height, width) is cut from the centre after a resize: `resize=256` makes the shorter
    side 256, `resize=(256, 256)` both sides whatever the shape was, and without `resize` the
    image is made just large enough. Without `size` nothing is cut. Before that, `orientation`
    "exif" turns photos upright as their EXIF says, as every viewer shows them; "stored" does not.
    """

    size: tuple[int, int] | None = None
    resize: int | tuple[int, int] | None = None
    interpolation: str = "bilinear"
    mean: Colour = (0.0, 0.0, 0.0)
    std: Colour = (1.0, 1.0, 1.0)
    orientation: str = "exif"

    def __post_init__(self) -> None:
        check_choice("interpolation", self.interpolation, INTERPOLATIONS)
        check_choice("orientation", self.orientation, ORIENTATIONS)
        if len(self.mean) != 3 or len(self.std) != 3 or not all(s > 0 for s in self.std):
            raise ValueError(
                "mean and std must be three numbers, for red, green and blue in [0, 1], and std "
                f"positive, got {self.mean} and {self.std}"
            )
        sides = [*(self.size or ()), *_to_pair(self.resize or ())]
        if not all(side > 0 for side in sides):
            raise ValueError(f"size and resize must be positive, got {self.size}, {self.resize}")
        if (
            self.size
            and self.resize
            and any(
                cut > whole for cut, whole in zip(self.size, _to_pair(self.resize), strict=True)
            )
        ):
            raise ValueError(
                f"size {self.size} must fit into an image resized to {self.resize}: "
                "raise resize, or leave it out"
            )

    def describe(self) -> str:
        """Size and normalisation in words."""
        size = "" if self.size is None else f"{self.size[0]} x {self.size[1]}"
        resize = self.resize
        if resize is not None:
            side = (
                f"shorter side {resize}"
                if isinstance(resize, int)
                else f"{resize[0]} x {resize[1]}"
            )
            shape = (
                f"resized to {side} ({self.interpolation}){size and f', {size} from the centre'}"
            )
        elif size:
            shape = f"resized and cut to {size} ({self.interpolation})"
        else:
            shape = "images at their own size"
        if self.mean == (0, 0, 0) and self.std == (1, 1, 1):
            return f"{shape}, in [0, 1] without normalisation"
        mean, std = (", ".join(f"{x:g}" for x in colour) for colour in (self.mean, self.std))
        return f"{shape}, normalised with mean {mean} and std {std}"

    def geometry(self, image: "PIL.Image.Image") -> "torch.Tensor":
        """The image resized and cut, as bytes (3, h, w)."""
        import torch

        return torch.from_numpy(self.pixels(image).copy()).permute(2, 0, 1)

    def pixels(self, image: "PIL.Image.Image | np.ndarray") -> UInt8[np.ndarray, "h w 3"]:
        """The image, or (h, w, 3) bytes, upright, resized and cut; not to be written to."""
        if isinstance(image, np.ndarray):
            height, width = image.shape[:2]
            same = self.compute_size(width, height) == (width, height)
            if same and self.size in (None, (height, width)):
                return image  # as it should be: no need to go through Pillow
            made: PIL.Image.Image = require("PIL.Image", "collect").fromarray(image)
            image = made
        if image.mode != "RGB":
            raise ValueError(f"image must be in RGB, got mode {image.mode}: convert it first")
        if self.orientation == "exif":
            image = turn_upright(image)
        width, height = self.compute_size(*image.size)
        if (width, height) != image.size:
            image = image.resize((width, height), INTERPOLATIONS[self.interpolation])
        if self.size is not None and self.size != (height, width):
            # Rounded half to even, as torchvision's CenterCrop does.
            top, left = round((height - self.size[0]) / 2), round((width - self.size[1]) / 2)
            image = image.crop((left, top, left + self.size[1], top + self.size[0]))
        return np.frombuffer(image.tobytes(), np.uint8).reshape(image.height, image.width, 3)

    def normalise(self, images: "torch.Tensor") -> "torch.Tensor":
        """Images (n, 3, h, w) in [0, 1] as the classifier was trained to see them."""
        if self.mean == (0, 0, 0) and self.std == (1, 1, 1):
            return images
        from rightly.transforms.image_tensors import constant

        mean, std = constant((self.mean, self.std), images.device, images.dtype)[:, :, None, None]
        return (images - mean) / std

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which `from_dict` reads back."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Preprocessing":
        """What `as_dict` gave, also after a way through JSON.

        Without `orientation` it is of an older version, which showed images as they are stored.
        """
        check_table(values, PLAIN, "preprocessing", only=True)
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**{"orientation": "stored", **fields})

    def compute_size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height after the resize, before anything is cut."""
        if isinstance(self.resize, tuple):
            return self.resize[1], self.resize[0]
        if self.resize is not None:
            # The longer side is rounded down, as torchvision's Resize does.
            if width <= height:
                return self.resize, self.resize * height // width
            return self.resize * width // height, self.resize
        if self.size is None:
            return width, height
        h, w = self.size
        if w * height >= h * width:  # the width has to grow more, or shrink less
            return w, w * height // width
        return h * width // height, h


def read_orientation(image: "PIL.Image.Image") -> int:
    """The EXIF orientation of an image, 1 to 8; 1, upright, where it has none."""
    try:
        value = image.getexif().get(ORIENTATION_TAG, 1)
    except Exception:  # damaged EXIF makes Pillow raise nearly anything; the image itself is whole
        return 1
    return value if value in TURNS else 1


def turn_upright(image: "PIL.Image.Image") -> "PIL.Image.Image":
    """The image as viewers show it: turned and mirrored as its EXIF says."""
    image.load()  # first: Pillow itself turns a TIFF when it is loaded, and removes the tag
    turn = TURNS.get(read_orientation(image))
    return image if turn is None else image.transpose(turn)  # type: ignore[arg-type]


def agreed(
    read_config: Callable[[], Preprocessing],
    transform: Callable[["PIL.Image.Image"], "torch.Tensor"],
    model: str,
) -> Preprocessing:
    """What a model's config says, if that does what the model's own transform does.

    Configs have many keys and libraries invent more: both are run on one image and compared.
    """
    try:
        preprocessing = read_config()
        difference = _measure_disagreement(preprocessing, transform)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the preprocessing of {model} cannot be read from its config ({error!r}): "
            "give preprocessing=Preprocessing(...) yourself"
        ) from error
    # Resampling differs by 0.003 at most on a smooth image, a crop of 7/8 by 0.03.
    if not difference < 0.01:
        raise ValueError(
            f"the preprocessing of {model} is not the resize, centre crop and normalisation that "
            f"its config reads as, {preprocessing}: give preprocessing=Preprocessing(...) yourself"
        )
    return preprocessing


def _measure_disagreement(
    preprocessing: Preprocessing, transform: Callable[["PIL.Image.Image"], "torch.Tensor"]
) -> float:
    pillow = require("PIL.Image", "collect")
    # Lopsided, so that crop, flip and order of channels show.
    y, x = np.mgrid[0:300, 0:360] / 360
    image = pillow.fromarray((255 * np.stack([x, y, (x * y) ** 2], -1)).astype(np.uint8))
    theirs = transform(image).float()
    ours = preprocessing.normalise(preprocessing.geometry(image)[None] / 255)[0]
    if ours.shape != theirs.shape:
        return float("inf")
    return float(((ours - theirs).abs().mean((1, 2)) * ours.new_tensor(preprocessing.std)).max())


def _is_side(value: Any) -> bool:
    return isinstance(value, Integral) and is_number(value) and int(value) > 0


def _are_sides(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_side, value))


def _is_colour(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 3 and all(map(is_number, value))


# What values from a file must be.
PLAIN: Schema = {
    "size": ("two sides in pixels, or null", or_null(_are_sides)),
    "resize": (
        "a side in pixels, two of them, or null",
        or_null(lambda value: _is_side(value) or _are_sides(value)),
    ),
    "interpolation": ("a name", is_text),
    "mean": ("three numbers", _is_colour),
    "std": ("three numbers", _is_colour),
    "orientation": (f"one of {list(ORIENTATIONS)}", ORIENTATIONS.__contains__),
}


def _to_pair(side: int | tuple[int, ...]) -> tuple[int, ...]:
    return side if isinstance(side, tuple) else (side, side)
