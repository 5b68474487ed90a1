"""Decoding: whatever a file or data set holds becomes an image in RGB, or a clear refusal."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rightly.optional import require

if TYPE_CHECKING:
    import PIL.Image

MARK = "converted_from"  # where an image's own `info` records the mode it had when stored


class UnreadableImage(Exception):  # noqa: N818 (named for what it tells, as callers read it)
    """An image that cannot be decoded; the caller skips it, by name, or stops."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)  # both, so that it survives the way between processes
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name} cannot be decoded: {self.reason}"


@dataclass(frozen=True)
class ImageFiles:
    """Decodes image files; `border` pixels are cut off on every side."""

    root: Path
    names: Sequence[str]
    border: int = 0

    def __call__(self, i: int) -> "PIL.Image.Image":
        name = self.names[i]
        try:
            with load_pillow().open(self.root / name) as stored:
                stored.load()
                image = to_rgb(stored)
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise nearly anything on damaged files
            reason = str(error).replace(f"{str(self.root / name)!r}", "the file")
            raise UnreadableImage(name, reason or type(error).__name__) from error
        if not self.border:
            return image
        width, height = image.size
        return image.crop((self.border, self.border, width - self.border, height - self.border))


def to_rgb(image: "PIL.Image.Image") -> "PIL.Image.Image":
    """The image in RGB, marked if it was not; alpha is dropped, as torchvision and timm do.

    It keeps its EXIF, by which preprocessing turns it upright.
    """
    mode, exif = image.mode, image.info.get("exif")
    if mode == "RGB":
        return image
    if mode.startswith("I;16"):
        # Pillow would cut 16-bit grey off at 255, which leaves nearly all of it white.
        grey = np.asarray(image).astype(np.uint32)
        image = load_pillow().fromarray(((grey + 128) // 257).astype(np.uint8))
    elif mode in ("I", "F"):
        raise ValueError(f"pixels of mode {mode} have no known range: store them as 8 or 16 bit")
    elif mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # straight to RGB, Pillow warns
    image = image.convert("RGB")
    image.info[MARK] = mode
    if exif is not None:
        image.info["exif"] = exif
    return image


def stored_mode(image: "PIL.Image.Image | NDArray[np.uint8]") -> str | None:
    """The mode in which an image was stored, such as L or RGBA, if it was not RGB."""
    return None if isinstance(image, np.ndarray) else image.info.get(MARK)


def to_image(value: Any, name: str) -> "PIL.Image.Image | NDArray[np.uint8]":
    """An image from what data sets yield: Pillow, (c, h, w) tensors or (h, w, c) arrays.

    Arrays in colour stay arrays: they are decoded already, and Pillow would only copy them.
    """
    if hasattr(value, "mode") and hasattr(value, "convert"):
        return to_rgb(value)
    if hasattr(value, "detach"):  # a tensor; servers decode in environments without torch
        pixels = value.detach().cpu().numpy()
        pixels = pixels.transpose(1, 2, 0) if pixels.ndim == 3 else pixels
    elif isinstance(value, np.ndarray):
        pixels = value
    else:
        raise TypeError(
            f"image {name} must be a Pillow image, a tensor (3, h, w) or an array (h, w, 3), "
            f"got {type(value).__name__}"
        )
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim != 2 and (pixels.ndim != 3 or pixels.shape[2] not in (3, 4)):
        raise ValueError(
            f"image {name} must have 1, 3 or 4 channels, got shape {tuple(value.shape)}: tensors "
            "are (channels, height, width), arrays (height, width, channels)"
        )
    plain = np.ascontiguousarray(_to_bytes(pixels, name))
    return plain if plain.shape[2:] == (3,) else to_rgb(load_pillow().fromarray(plain))


def _to_bytes(pixels: NDArray[Any], name: str) -> NDArray[Any]:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind != "f":
        raise TypeError(f"image {name} must be uint8 or float in [0, 1], got {pixels.dtype}")
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= 0 and high <= 1):  # written so that NaN is refused as well
        raise ValueError(
            f"image {name} must lie in [0, 1] as float, got values from {low:g} to {high:g}: leave "
            "normalisation to the preprocessing of the model, and divide 8-bit values by 255"
        )
    return (pixels * 255).round().astype(np.uint8)


def load_pillow() -> Any:
    """Pillow's Image module, loaded when the first image is read."""
    return require("PIL.Image", "collect")
