"""Views of place: the image turned, mirrored, moved, nearer.

The border is mirrored: black corners would be a second change, and one that a classifier answers by
itself.
"""

import math

import torch.nn.functional as F  # noqa: N812

from rightly.transforms.image_tensors import Images, constant, promote, to_images


def rotation(images: Images) -> Images:
    """The images turned by 15 degrees anticlockwise."""
    return _rotate(images, 15.0)


def rotation_back(images: Images) -> Images:
    """The images turned by 15 degrees clockwise: the opposite of `rotation`."""
    return _rotate(images, -15.0)


def rotation_90(images: Images) -> Images:
    """The images turned by a quarter anticlockwise; oblong ones are then fitted to their shape."""
    h, w = images.shape[2:]
    turned = images.transpose(2, 3).flip(2).contiguous()
    if h == w:
        return turned
    fitted = F.interpolate(promote(turned), size=(h, w), mode="bilinear", align_corners=False)
    return to_images(fitted, images)


def hflip(images: Images) -> Images:
    """The images in a mirror: left and right swapped."""
    return images.flip(3)


def translation(images: Images) -> Images:
    """The images moved right and down by a tenth of their sides."""
    return _translate(images, 0.1, 0.1)


def translation_back(images: Images) -> Images:
    """The images moved left and up by a tenth of their sides: the opposite of `translation`."""
    return _translate(images, -0.1, -0.1)


def hflip_translation(images: Images) -> Images:
    """The images moved right and up by a twentieth of their sides, then mirrored."""
    return hflip(_translate(images, 0.05, -0.05))


def zoom(images: Images) -> Images:
    """The middle 80 % of each side, enlarged to the full image."""
    h, w = images.shape[2:]
    top, left = round(0.1 * h), round(0.1 * w)
    middle = promote(images)[:, :, top : h - top, left : w - left]
    return to_images(
        F.interpolate(middle, size=(h, w), mode="bilinear", align_corners=False), images
    )


def _rotate(images: Images, degrees: float) -> Images:
    """The images turned anticlockwise; clockwise where degrees are negative."""
    n, _, h, w = images.shape
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    # Coordinates run from -1 to 1 along each side: h / w keeps angles true in oblong images.
    values = promote(images)
    matrix = ((cos, -sin * h / w, 0.0), (sin * w / h, cos, 0.0))
    turn = constant((matrix,), values.device, values.dtype)
    grid = F.affine_grid(turn, [1, 3, h, w], align_corners=False).expand(n, -1, -1, -1)
    turned = F.grid_sample(values, grid, padding_mode="reflection", align_corners=False)
    return to_images(turned, images)


def _translate(images: Images, right: float, down: float) -> Images:
    """The images moved by shares of their sides; left and up where negative."""
    h, w = images.shape[2:]
    x, y = round(right * w), round(down * h)
    left, up = max(-x, 0), max(-y, 0)
    padded = F.pad(images, (max(x, 0), left, max(y, 0), up), mode="reflect")
    return padded[:, :, up : up + h, left : left + w].contiguous()
