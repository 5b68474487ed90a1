"""From uploaded bytes to the pixels that the model takes, or a refusal that names the file."""

from typing import NoReturn

import numpy as np
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

from rightly.classifiers.preprocessing import Preprocessing, read_orientation
from rightly.datasets.decoding import to_rgb
from rightly.serving.limits import Limits, RefusedRequest
from rightly.serving.uploads import Upload

# Named one by one: Pillow's other readers are many, old, and one of them starts a program.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")


def decode_upload(
    upload: Upload, preprocessing: Preprocessing, limits: Limits
) -> UInt8[np.ndarray, "h w 3"]:
    """The pixels as `collect` would make them: first frame, upright, resized and cut."""
    with _open_image(upload, limits) as stored:
        width, height = stored.size
        if preprocessing.orientation == "exif" and read_orientation(stored) >= 5:  # on its side
            width, height = height, width
        _check_size(upload, (width, height), preprocessing, limits)
        try:
            stored.load()
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise nearly anything on damaged files
            _refuse_damaged(upload, error)
        try:
            return preprocessing.pixels(to_rgb(stored))
        except ValueError as error:
            raise RefusedRequest(422, "unsupported_pixels", f"{upload}: {error}") from error


def _open_image(upload: Upload, limits: Limits) -> Image.Image:
    if not upload.data.getbuffer().nbytes:
        raise RefusedRequest(422, "empty_file", f"{upload} is empty")
    upload.data.seek(0)
    try:
        return Image.open(upload.data, formats=FORMATS)
    except UnidentifiedImageError as error:
        raise RefusedRequest(
            415, "not_an_image", f"{upload} is not an image in one of {', '.join(FORMATS)}"
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        _refuse_pixels(upload, f"more than {limits.max_pixels:,} pixels")
    except MemoryError:
        raise
    except Exception as error:
        _refuse_damaged(upload, error)


def _check_size(
    upload: Upload, size: tuple[int, int], preprocessing: Preprocessing, limits: Limits
) -> None:
    width, height = size
    if width * height > limits.max_pixels:
        _refuse_pixels(
            upload, f"{width} x {height} pixels, and {limits.max_pixels:,} are the most allowed"
        )
    # A strip of one pixel by a million is small, but resized by its shorter side it is not, and
    # Pillow resizes the width first, at full height.
    wide, high = preprocessing.compute_size(width, height)
    if wide * max(high, height) > limits.max_pixels:
        _refuse_pixels(
            upload,
            f"{width} x {height} pixels, a shape that would be resized to {wide} x {high}, and "
            f"{limits.max_pixels:,} pixels are the most allowed on the way",
        )


def _refuse_pixels(upload: Upload, how_many: str) -> NoReturn:
    raise RefusedRequest(413, "too_many_pixels", f"{upload} has {how_many}")


def _refuse_damaged(upload: Upload, error: Exception) -> NoReturn:
    reason = str(error) or type(error).__name__
    raise RefusedRequest(422, "damaged_image", f"{upload} cannot be decoded: {reason}") from error
