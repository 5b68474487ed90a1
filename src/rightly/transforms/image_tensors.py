"""What views and shifts are made of: checks, blurs, and draws from an image and a seed alone.

A view or shift that drew from a running generator would give an image another confidence each time
it is seen. Here each image is hashed with exact integer arithmetic and the draws follow from the
hash. Only additions, products and remainders are used, so the draws export to ONNX too.
"""

import hashlib
import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Images = Float[Tensor, "n 3 h w"]

PRIME = 2**31 - 1  # two residues multiply to less than 2**62, so int64 never overflows


def check_images(images: Tensor) -> None:
    """Refuses anything but float images of shape (n, 3, h, w) with values in [0, 1]."""
    if not images.is_floating_point():
        raise ValueError(
            f"images must be float with values in [0, 1], got {images.dtype};"
            " divide 8-bit images by 255"
        )
    if images.ndim != 4 or images.shape[1] != 3:
        raise ValueError(f"images must have shape (n, 3, h, w), got {tuple(images.shape)}")
    if images.numel() == 0:
        return
    low, high = (float(extreme) for extreme in images.aminmax())
    if not (low >= 0 and high <= 1):  # written so that NaN is refused as well
        raise ValueError(
            f"images must lie in [0, 1], got values from {low:g} to {high:g};"
            " pass them before normalisation"
        )


def promote(images: Images) -> Images:
    """The images in at least float32: 16-bit floats are too coarse for coordinates and sums."""
    return images.to(torch.promote_types(images.dtype, torch.float32))


def to_images(values: Images, like: Images) -> Images:
    """The values held to [0, 1] in the type of the images they were made from."""
    return values.clamp(0, 1).to(like.dtype)


def blur_gaussian(values: Images, sigma: float) -> Images:
    """The values under a Gaussian blur of so many pixels, mirrored at the border."""
    h, w = values.shape[2:]
    rows = _gaussian_matrix(h, sigma, values)
    columns = rows if h == w else _gaussian_matrix(w, sigma, values)
    # Two products of matrices: at this width faster than a convolution, on GPU and CPU.
    return rows @ values @ columns.T


def hash_pixels(images: Images, count: int, seed: int) -> Int[Tensor, "n {count}"]:
    """Whole numbers in [0, PRIME), `count` for each image: hashes of its 8-bit pixels and the seed.

    Hashed are the sums of the rows and columns of each channel, on a grid that skips pixels of
    large images. That reads the image once, and every sum is a whole number below 2**24, which
    float32 adds exactly in any order. Random weights modulo a prime make any two images as good
    as independent (Carter and Wegman, 1979).
    """
    h, w = images.shape[2:]
    # At most 127 rows and columns, so the weighted sum below stays under 2**56.
    grid = images[:, :, :: max(1, h // 64), :: max(1, w // 64)]
    pixels = (grid.float() * 255).round()
    sums = torch.cat([pixels.sum(3).flatten(1), pixels.sum(2).flatten(1)], 1).long()
    numbers = tuple(_hash_seed(count * (sums.shape[1] + 1), seed).tolist())
    weights = constant(numbers, images.device, torch.int64).reshape(count, -1)
    return ((sums[:, None] * weights[:, 1:]).sum(2) + weights[:, 0]) % PRIME


def draw_uniforms(images: Images, count: int, seed: int) -> Float[Tensor, "n {count}"]:
    """Numbers in [0, 1), `count` for each image, equal to the last bit on every device."""
    # 24 bits are what float32 holds exactly; dividing all 31 would round some draws up to 1.
    return (hash_pixels(images, count, seed) % 2**24).float() / 2**24


def seed_generators(images: Images, seed: int) -> list[torch.Generator]:
    """One CPU generator for each image, for the many draws of a shift that is never exported."""
    return [torch.Generator().manual_seed(key) for (key,) in hash_pixels(images, 1, seed).tolist()]


def draw_fields(images: Images, shape: tuple[int, ...], seed: int) -> Tensor:
    """Numbers in [0, 1), as many for each image as that shape has places; never exported."""
    drawn = torch.empty(images.shape[0], *shape)
    for one, generator in zip(drawn, seed_generators(images, seed), strict=True):
        one.uniform_(generator=generator)
    return drawn.to(images.device)


def draw_gaussians(count: int, seed: int, device: torch.device) -> Float[Tensor, " {count}"]:
    """Standard normal numbers from the seed alone, made on the device (Box and Muller, 1958)."""
    step, start = _hash_seed(2, seed).tolist()
    numbers = (torch.arange(2 * count, device=device).reshape(2, count) * step + start) % PRIME
    # Fifth powers break up the even steps; 5 is the least that is one-to-one modulo this prime.
    fourth = numbers.square().remainder(PRIME).square().remainder(PRIME)
    radius, angle = ((fourth * numbers).remainder(PRIME) + 1).float() / (PRIME + 1)
    return (-2 * radius.log()).sqrt() * (2 * math.pi * angle).cos()


def constant(numbers: tuple[Any, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Numbers as a tensor on the device, kept for the next call.

    A copy from the host would make it wait until the device has done all its work. While a model
    is exported nothing is kept, because tensors stand for others then.
    """
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return torch.tensor(numbers, device=device, dtype=dtype)
    return _cached_constant(numbers, device, dtype)


@lru_cache(256)
def _cached_constant(numbers: tuple[Any, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    # A tensor made in inference mode could not be used outside of it.
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device, dtype=dtype)


@lru_cache(64)
def _hash_seed(count: int, seed: int) -> Int[np.ndarray, " {count}"]:
    # From SHAKE and not from a library's generator, whose numbers may change with its version.
    stream = hashlib.shake_256(str(seed).encode()).digest(8 * count)
    return (np.frombuffer(stream, dtype="<u8") % PRIME).astype(np.int64)


def _gaussian_matrix(side: int, sigma: float, like: Images) -> Float[Tensor, "{side} {side}"]:
    """A matrix whose every row is a Gaussian about its own pixel, mirrored at both ends."""
    to = torch.arange(side, device=like.device, dtype=like.dtype)
    here = to[:, None]
    distances = torch.stack([here - to, here + to + 1, 2 * side - 1 - here - to])
    bells = (-0.5 * (distances / sigma) ** 2).exp().sum(0)
    return bells / bells.sum(1, keepdim=True)
