"""Shifts of place move pixels where they say."""

import numpy as np
import torch
from scipy import ndimage

from rightly.transforms.shifts import SHIFTS
from tests.transforms.example_images import every_severity, photos, places


@every_severity
def test_rotation_is_scipys_to_the_left_or_to_the_right(severity: int) -> None:
    images = photos(8, 61, 51)
    (degrees,) = SHIFTS["rotation"].strength(severity, 32)
    shifted = SHIFTS["rotation"](images, severity, 0).numpy()
    inside = (..., slice(18, -18), slice(14, -14))
    left, right = (
        np.abs(
            shifted - ndimage.rotate(images.numpy(), angle, axes=(2, 3), reshape=False, order=1)
        )[inside].max((1, 2, 3))
        for angle in (degrees, -degrees)
    )
    assert np.minimum(left, right).max() < 1e-4
    assert 0 < (left < right).sum() < 8


def test_zoom_out_shrinks_towards_the_middle() -> None:
    ramp = torch.linspace(0, 1, 80).expand(1, 3, 80, 80)
    seen = SHIFTS["zoom_out"](ramp, 5, 0)[0, 0, 40]
    assert torch.allclose(seen[22:58], 0.5 + 2 * (ramp[0, 0, 0, 22:58] - 0.5), atol=1e-5)
    assert torch.allclose(seen[:20], seen[21:41].flip(0), atol=1e-6)


@every_severity
def test_shear_moves_rows_sideways_in_proportion_to_their_height(severity: int) -> None:
    images = places(40, 60)
    (slant,) = SHIFTS["shear"].strength(severity, 32)
    slanted = SHIFTS["shear"](images, severity, 0)
    inside = (slice(None), slice(None), slice(10, 30), slice(25, 35))
    moved = (slanted - images)[inside]
    assert moved[:, 1].abs().max() < 1e-5
    expected = slant * (images[inside][:, 1] - 0.5)
    sides = (moved[:, 0] * expected).sum((1, 2)).sign()
    torch.testing.assert_close(moved[:, 0], expected * sides[:, None, None], rtol=0.0, atol=1e-5)
    assert set(sides.tolist()) == {-1.0, 1.0}


@every_severity
def test_elastic_moves_places_smoothly_and_no_farther_than_it_may(severity: int) -> None:
    images = places(64, 64)
    (reach,) = SHIFTS["elastic"].strength(severity, 32)
    moved = (SHIFTS["elastic"](images, severity, 0) - images)[:, :2, 16:48, 16:48]
    # Bicubic curves overshoot what they pass through, by an eighth in each direction.
    assert reach / 3 < moved.abs().max() < 1.3 * reach
    assert moved.diff(dim=3).abs().max() < 0.2 * reach
