"""Small data that tests share: a classifier that is right about two times in three."""

import importlib.util
import sys
from pathlib import Path

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


@pytest.fixture(scope="session")
def loadable_torchvision():
    """Lets torchvision be imported, which other libraries do where they find it.

    PyPI's is a CUDA build, and on a CPU torch lacks two operators, which are declared here.
    """
    library, found = None, importlib.util.find_spec("torchvision")
    if found is not None and "torchvision" not in sys.modules and torch.version.cuda is None:
        if "+cu" in Path(found.origin).with_name("version.py").read_text():
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
    yield
    del library  # until here: the operators vanish with it
