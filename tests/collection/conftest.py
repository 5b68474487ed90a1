"""What tests of collection share."""

from functools import partial

import pytest
import torch

from rightly.collection import Plan, pipeline
from tests.collection.tiny_model import Tiny


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shards_of(monkeypatch):
    """Makes `collect` store few images at a time."""

    def make(size):
        monkeypatch.setattr(pipeline, "Plan", partial(Plan, shard_size=size))

    return make


@pytest.fixture
def in_training():
    model = Tiny()
    model.train()
    model.dropout.eval()
    model.conv.bias.requires_grad_(False)
    model(torch.rand(2, 3, 8, 8)).sum().backward()
    return model
