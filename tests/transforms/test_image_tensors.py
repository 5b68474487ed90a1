"""Draws depend on an image and a seed alone; images out of range are refused."""

import hashlib
import struct

import numpy as np
import pytest
import torch
from scipy import stats

from rightly.transforms.image_tensors import (
    PRIME,
    check_images,
    draw_gaussians,
    draw_uniforms,
    hash_pixels,
)


def test_draws_never_change_between_devices_or_versions() -> None:
    pixels = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    sums = [1, *pixels.sum(2).ravel().tolist(), *pixels.sum(1).ravel().tolist()]
    stream = hashlib.shake_256(b"7").digest(8 * len(sums))
    weights = [value % PRIME for (value,) in struct.iter_unpack("<Q", stream)]
    key = sum(value * weight for value, weight in zip(sums, weights, strict=True)) % PRIME
    images = torch.from_numpy(pixels)[None].float() / 255
    assert hash_pixels(images, 1, 7).tolist() == [[key]]
    assert draw_uniforms(images, 1, 7).item() == key % 2**24 / 2**24
    assert key == 587571989


def test_draws_are_uniform_and_unrelated() -> None:
    images = torch.rand(20_000, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    assert hash_pixels(images, 1, 0).unique().numel() > 19_990
    assert 0 <= hash_pixels(images, 2, -3).min() <= hash_pixels(images, 2, 2**40).max() < PRIME
    draws = torch.cat([draw_uniforms(images, 3, 0), draw_uniforms(images, 3, 1)], 1)
    counts = torch.stack([torch.histc(draw, 10, 0, 1) for draw in draws.T])
    assert (counts - 2000).abs().max() < 5 * 2000**0.5
    assert (torch.corrcoef(draws.T) - torch.eye(6)).abs().max() < 5 / 20_000**0.5


def test_images_that_differ_in_one_pixel_draw_differently() -> None:
    images = torch.full((768, 3, 16, 16), 0.5)
    images.view(768, -1)[torch.arange(768), torch.arange(768)] += 2 / 255
    draws = draw_uniforms(images, 1, 0)[:, 0]
    assert draws.unique().numel() > 760
    assert (torch.histc(draws, 8, 0, 1) - 96).abs().max() < 5 * 96**0.5


def test_gaussians_are_standard_normal() -> None:
    draws = draw_gaussians(100_000, 3, torch.device("cpu")).double().numpy()
    assert stats.kstest(draws, "norm").pvalue > 0.01
    assert abs(np.mean(draws[1:] * draws[:-1])) < 0.01


def test_images_of_another_type_or_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="got torch.uint8; divide 8-bit images by 255"):
        check_images(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
    for shape in [(3, 8, 8), (1, 8, 8, 3), (1, 1, 8, 8), (2, 1, 3, 8, 8)]:
        with pytest.raises(ValueError, match=r"shape \(n, 3, h, w\), got \("):
            check_images(torch.zeros(shape))
    check_images(torch.zeros(0, 3, 8, 8))
