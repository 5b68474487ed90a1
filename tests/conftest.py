"""Small data that tests share: a classifier that is right about two times in three."""

import pytest
import torch

from rightly import CALIBRATORS, Predictions


def make(n: int = 300, c: int = 10, m: int = 3, d: int = 16, seed: int = 0, noise: float = 1.0):
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, c, generator=g)
    views = logits[:, None] + noise * torch.randn(n, m, c, generator=g)
    features = torch.randn(n, d, generator=g) + logits.amax(-1, keepdim=True)
    # Drawn by Gumbel's trick, because Categorical.sample takes no generator.
    gumbel = -(-torch.rand(n, c, generator=g).clamp(1e-9, 1 - 1e-7).log()).log()
    labels = (logits / 1.5 + gumbel).argmax(-1)
    names = [f"view{i}" for i in range(m)]
    return Predictions(logits, views, features, names), labels


def make_for(name: str, **sizes: int):
    """Data of as many classes as a method is for."""
    return make(**{"c": CALIBRATORS[name].fits_classes or 10, **sizes})


@pytest.fixture
def sample():
    return make()


@pytest.fixture
def other():
    return make(seed=1)
