"""Networks as plain tensors, against torch.nn."""

import torch
from torch import nn

from rightly.calibrators.solvers.networks import (
    compute_centre_scale,
    draw_layers,
    pack,
    parameters,
    run,
    unpack,
)


def draw(sizes, seed=0):
    return draw_layers(sizes, torch.Generator().manual_seed(seed), torch.device("cpu"))


def test_it_runs_as_torchs_linear_layers():
    layers = draw([4, 5, 3, 1])
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(*weight.shape, dtype=torch.float64)
        linear.load_state_dict({"weight": weight.T, "bias": bias})
        modules += [linear, nn.ReLU()]
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(run(layers, x), nn.Sequential(*modules[:-1])(x))


def test_layers_are_drawn_within_their_bound_on_both_sides():
    weight, bias = draw([100, 200])[0]
    for tensor in (weight, bias):
        assert float(tensor.abs().max()) <= 0.1
        assert float(tensor.min()) < -0.09 and float(tensor.max()) > 0.09
    assert abs(float(weight.mean())) < 0.002


def test_what_is_packed_is_unpacked():
    layers = draw([3, 2, 2, 1])
    packed = pack("head", layers) | pack("other", draw([1, 1]))
    again = unpack("head", packed)
    assert len(again) == 3
    for one, other in zip(parameters(layers), parameters(again), strict=True):
        assert torch.equal(one, other)


def test_a_constant_column_has_scale_one():
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]]).double()
    centre, scale = compute_centre_scale(x)
    assert centre.tolist() == [2.0, 5.0] and scale.tolist() == [1.0, 1.0]
    assert compute_centre_scale(3 * x)[1].tolist() == [3.0, 1.0]
