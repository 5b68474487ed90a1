"""Noise has its published strength."""

import numpy as np
import pytest
import torch

from rightly.transforms.shifts import SHIFTS
from tests.transforms.example_images import every_severity, photos


@every_severity
@pytest.mark.parametrize("size", [(32, 32), (80, 96)])
def test_noise_has_its_published_variance(severity: int, size: tuple[int, int]) -> None:
    n = 40_000 // size[0] ** 2 + 1
    grey = torch.full((n, 3, *size), 0.5)
    grey[:, 0, 0, 0] = torch.arange(n) / 255  # so that no two images draw alike
    (deviation,) = SHIFTS["gaussian_noise"].strength(severity, min(size))
    noisy = SHIFTS["gaussian_noise"](grey, severity, 0)[:, 1:]
    clipped = np.random.default_rng(0).normal(0.5, deviation, 200_000).clip(0, 1)
    assert noisy.std().item() == pytest.approx(clipped.std(), rel=0.02)
    (photons,) = SHIFTS["shot_noise"].strength(severity, min(size))
    counts = SHIFTS["shot_noise"](grey, severity, 0)[:, 1:] * photons
    assert torch.allclose(counts, counts.round(), atol=1e-3)
    expected = np.random.default_rng(0).poisson(photons / 2, 200_000).clip(0, photons)
    assert counts.mean().item() == pytest.approx(expected.mean(), rel=0.02)
    assert counts.var().item() == pytest.approx(expected.var(), rel=0.05)
    (share,) = SHIFTS["impulse_noise"].strength(severity, min(size))
    sprinkled = SHIFTS["impulse_noise"](grey, severity, 0)[:, 1:]
    assert (sprinkled == 0).float().mean().item() == pytest.approx(share / 2, rel=0.1)
    assert (sprinkled == 1).float().mean().item() == pytest.approx(share / 2, rel=0.1)


def test_noise_differs_between_images() -> None:
    images = photos(6) * 0.2 + 0.4
    noise = SHIFTS["gaussian_noise"](images, 3, 0) - images
    assert (torch.corrcoef(noise.flatten(1)) - torch.eye(6)).abs().max() < 0.1
