"""A small model and images for it."""

import pytest
import torch

from tests.classifiers.example_models import Small


@pytest.fixture
def small():
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture
def images():
    return torch.rand(4, 3, 12, 12, generator=torch.Generator().manual_seed(1))
