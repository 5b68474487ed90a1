"""What runs a classifier leaves it as it was."""

import pytest
import torch
from torch import nn

from rightly.classifiers import open_model
from tests.classifiers.example_models import Small, said


def state_of(module):
    return (
        [part.training for part in module.modules()],
        [(p.device, p.dtype, p.requires_grad, p.data_ptr(), p.grad) for p in module.parameters()],
        [(b.device, b.data_ptr(), float(b.sum())) for b in module.buffers()],
        [id(tensor) for tensor in (*module.parameters(), *module.buffers())],
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_the_users_model_is_left_as_it_was_found(images, device, fails, dtype):
    model = Small().train()
    model.body[1].eval()  # a frozen batch norm in a model in training
    model.hidden.weight.requires_grad_(False)
    model(images).sum().backward()
    model.tied = model.head  # the same module twice
    before = state_of(model)
    values = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    classifier = open_model(model, device=device)
    try:
        with classifier.prepare(dtype, channels_last=True):
            assert not any(part.training for part in model.modules())
            assert all(p.device.type == device for p in model.parameters())
            assert all(p.dtype == (dtype or torch.float32) for p in model.parameters())
            logits, features = classifier.forward(images, features=True)
            assert logits.dtype == features.dtype == torch.float32
            assert not logits.requires_grad and logits.device.type == device
            if fails:
                raise KeyError("midway")
    except KeyError:
        assert fails
    assert state_of(model) == before
    assert all(torch.equal(tensor, values[name]) for name, tensor in model.state_dict().items())
    assert not any(part._forward_pre_hooks for part in model.modules())
    model(images).sum().backward()  # and it can still be trained


def test_a_model_that_fails_inside_is_restored_too(images):
    class Failing(Small):
        def forward(self, x):
            super().forward(x)
            raise ArithmeticError("inside the model")

    model = Failing().train()
    classifier = open_model(model)
    with pytest.raises(ArithmeticError), classifier.prepare():
        classifier.forward(images, features=True)
    assert all(part.training for part in model.modules())
    assert not any(part._forward_pre_hooks for part in model.modules())


def test_features_are_the_input_of_the_last_linear_layer(small, images):
    logits, features = said(open_model(small, features=True), images, features=True)
    with torch.no_grad():
        assert torch.equal(features, small.penultimate(images))
        assert torch.allclose(small.scale * small.head(features), logits, atol=1e-6)


def test_features_of_many_dimensions_are_flattened(images):
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(12, 5)

        def forward(self, x):
            return self.head(input=x).mean((1, 2))

    _, features = said(open_model(Tokens()), images, features=True)
    assert torch.equal(features, images.flatten(1))


def test_fingerprints_follow_the_weights(small):
    first = open_model(small).fingerprint
    assert first == open_model(small).fingerprint and len(first) == 64
    held = open_model(lambda x: small(x)).fingerprint
    bound = open_model(small.forward).fingerprint
    with torch.no_grad():
        small.head.bias[0] += 1
    assert open_model(small).fingerprint != first
    assert open_model(small.forward).fingerprint != bound
    # The lambda below stands in the same place by name, so only the weights can differ.
    assert open_model(lambda x: small(x)).fingerprint != held
    buffered = Small()
    second = open_model(buffered).fingerprint
    buffered.scale += 1
    assert open_model(buffered).fingerprint != second
    halves = nn.Linear(2, 2).to(torch.bfloat16)
    assert len(open_model(halves).fingerprint) == 64


def test_devices_that_are_not_here_are_refused(small):
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch sees no GPU"):
            open_model(small, device="cuda")
    assert open_model(small, device="cpu").device == torch.device("cpu")
