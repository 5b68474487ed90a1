"""What slips past `eval` is found in the first batch: dropout by chance, batch norm by company."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from rightly.classifiers import Preprocessing
from rightly.collection import collect
from tests.collection.tiny_model import flat

SIZE = Preprocessing((8, 8))


def network(*layers):
    torch.manual_seed(0)
    convolution = nn.Conv2d(3, 8, 3)
    return nn.Sequential(convolution, *layers, nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))


class FunctionalDropout(nn.Module):
    """Dropout that never learned to ask for the mode: the default is training=True."""

    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, images):
        return functional.dropout(self.layers(images), 0.5)


class AlwaysTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = network(nn.BatchNorm2d(8))

    def train(self, mode=True):
        return super().train(True)

    def forward(self, images):
        return self.layers(images)


def as_function(model):
    return lambda images: model(images)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return flat(tmp_path_factory.mktemp("images") / "all", 6)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (as_function(network(nn.Dropout(0.1)).train()), "as dropout"),
        (FunctionalDropout(), "as dropout"),
        (as_function(network(nn.BatchNorm2d(8)).train()), "as batch normalisation"),
        (AlwaysTraining(), "as batch normalisation"),
    ],
)
def test_a_model_in_training_mode_is_refused(images, tmp_path, model, words):
    for batch_size in (6, 4):
        with pytest.raises(ValueError, match=rf"{words}.*model\.eval\(\).*allow_random=True"):
            collect(model, images, views=(), batch_size=batch_size, preprocessing=SIZE)
    found, _ = collect(model, images, views=(), preprocessing=SIZE, allow_random=True)
    assert len(found) == 6


def test_dropout_is_found_in_batches_of_one(images):
    with pytest.raises(ValueError, match="allow_random=True"):
        collect(FunctionalDropout(), images, views=(), batch_size=1, preprocessing=SIZE)


def test_a_module_in_training_mode_is_put_into_evaluation_mode(images):
    model = network(nn.BatchNorm2d(8), nn.Dropout(0.5)).train()
    collect(model, images, views=(), preprocessing=SIZE)
    assert model.training


def test_healthy_functions_are_taken_whatever_their_logits(images):
    model = network(nn.BatchNorm2d(8), nn.Dropout(0.5)).eval()

    def only_batches_of_six(batch):
        assert len(batch) == 6
        return model(batch).half()  # and rounded

    def one_class_masked(batch):
        return model(batch).index_fill(1, torch.tensor([2]), -torch.inf)

    def always_the_same(batch):
        return torch.tensor([[1.0, 2.0]]).expand(len(batch), 2)

    for function in (only_batches_of_six, one_class_masked, always_the_same):
        collect(function, images, views=(), preprocessing=SIZE)
