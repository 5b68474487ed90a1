"""Blurs are those of SciPy, or of the published sets."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from rightly.transforms.shifts import SHIFTS
from rightly.transforms.shifts.blur import disc_kernel
from tests.transforms.example_images import every_severity, photos, places


@every_severity
@pytest.mark.parametrize("size", [(32, 40), (72, 65)])
def test_gaussian_blur_is_scipys(severity: int, size: tuple[int, int]) -> None:
    images = photos(2, *size)
    (sigma,) = SHIFTS["gaussian_blur"].strength(severity, min(size))
    expected = ndimage.gaussian_filter(
        images.double().numpy(), (0, 0, sigma, sigma), mode="nearest", truncate=4
    )
    assert np.abs(SHIFTS["gaussian_blur"](images, severity, 0).numpy() - expected).max() < 1e-6


@every_severity
@pytest.mark.parametrize("side", [32, 224])
def test_the_disc_of_defocus_sums_to_one_and_is_round(severity: int, side: int) -> None:
    strength = SHIFTS["defocus_blur"].strength(severity, side)
    kernel = disc_kernel(*strength)
    assert kernel.sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(kernel, kernel.T)
    assert torch.allclose(kernel, kernel.flip(0))
    radius = strength[0]
    middle = kernel.shape[0] // 2
    if radius >= 3:  # well inside all weights are alike, and outside there are none
        inner = kernel[middle, middle - int(radius) + 3 : middle + int(radius) - 2]
        assert torch.allclose(inner, inner[:1])
        assert 1 / inner[0].item() == pytest.approx(np.pi * radius**2, rel=0.1)
        assert kernel[0, 0] == 0


def test_defocus_blur_is_a_convolution_with_the_disc() -> None:
    images = photos(1, 70, 80)
    kernel = disc_kernel(*SHIFTS["defocus_blur"].strength(3, 70)).numpy()
    expected = ndimage.convolve(images.double().numpy(), kernel[None, None], mode="mirror")
    assert np.abs(SHIFTS["defocus_blur"](images, 3, 0).numpy() - expected).max() < 1e-6


def test_motion_blur_smears_points_along_a_line_within_45_degrees_of_level() -> None:
    images = torch.zeros(20, 3, 100, 100)
    images[:, :, 50, 50] = 1
    images[:, 0, 0, 0] = torch.arange(20) / 255
    smeared = SHIFTS["motion_blur"](images, 3, 0)[:, 1].double()
    assert torch.allclose(smeared.sum((1, 2)), torch.ones(20, dtype=torch.float64), atol=1e-5)
    # The weights of half a bell of deviation 8 over 31 pixels.
    bell = np.exp(-0.5 * (np.arange(31) / 8) ** 2)
    slopes, matched = [], 0
    for one in smeared:
        lit = one.nonzero().double() - 50
        weights = one[one > 0].sort(descending=True).values.numpy()
        if len(weights) == 31:  # in some directions two steps fall on one pixel
            matched += 1
            assert np.abs(weights - bell / bell.sum()).max() < 1e-6
        far = lit[lit.norm(dim=1).argmax()]
        slopes.append((far[0] / far[1]).item())
        assert (lit - lit[:, 1:] * far / far[1]).abs().max() < 1.5
    assert matched > 2
    assert max(np.abs(slopes)) <= 1.05
    assert max(slopes) - min(slopes) > 1


@every_severity
@pytest.mark.parametrize("side", [32, 224])
def test_glass_takes_pixels_from_as_far_as_published(severity: int, side: int) -> None:
    deviation, reach, times = SHIFTS["glass"].strength(severity, side)
    assert 1 <= reach <= 4  # ImageNet-C's largest
    images = places(side, side)
    moved = (SHIFTS["glass"](images, severity, 0) - images)[:, :2, 8:-8, 8:-8] * side
    assert moved.abs().max() <= reach * times + 4 * deviation
    # A pixel strays uniformly over -reach .. reach - 1, so often; the blur only averages that.
    assert moved.mean().item() == pytest.approx(-times / 2, abs=0.1)
    assert 0 < moved.std().item() <= 1.05 * (times * (4 * reach**2 - 1) / 12) ** 0.5


def test_glass_at_severity_four_leaves_a_large_image_recognisable() -> None:
    image = photos(1, 224, 224)
    shifted = SHIFTS["glass"](image, 4, 0)
    blurred = SHIFTS["gaussian_blur"](image, 4, 0)
    # The old form, a share of the side, moved pixels by 12 of 224 and destroyed the image.
    assert (shifted - image).abs().mean() < 1.5 * (blurred - image).abs().mean()
