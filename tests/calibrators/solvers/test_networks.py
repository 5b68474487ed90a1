"""Networks against torch.nn; training loops: what they reach, when they stop, that they repeat."""

import pytest
import torch
from torch import nn

from rightly.calibrators.solvers import networks
from rightly.calibrators.solvers.execution import deterministic, single_threaded
from rightly.calibrators.solvers.networks import (
    compute_centre_scale,
    draw_layers,
    fit_network,
    pack,
    parameters,
    run,
    train_adam,
    train_lbfgs,
    unpack,
)
from rightly.predictions.rows import stratified_split


def make_line(n=400):
    """Two columns and their weighted sum, which a network without hidden layers fits exactly."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(0)).double()
    return x, x @ torch.tensor([2.0, -1.0]).double() + 0.5


def test_lbfgs_reaches_least_squares_with_its_ridge_penalty():
    x, y = make_line()
    decay = 0.3
    layers = draw_layers([2, 1], torch.Generator().manual_seed(0), x.device)
    with deterministic():
        reached = train_lbfgs(
            layers, lambda layers: (run(layers, x).squeeze(-1) - y).square().mean(), decay
        )
    centred = x - x.mean(0)
    gram = centred.T @ centred / len(x) + decay * torch.eye(2).double()
    expected = torch.linalg.solve(gram, centred.T @ (y - y.mean()) / len(x))
    torch.testing.assert_close(layers[0][0].squeeze(-1), expected, atol=1e-4, rtol=0)
    residual = (run(layers, x).squeeze(-1) - y).square().mean()
    assert reached == pytest.approx(float(residual + decay * expected.square().sum()), abs=1e-6)
    assert not layers[0][0].requires_grad


def test_lbfgs_keeps_what_is_best_on_the_held_out_rows():
    x, y = make_line()
    layers = draw_layers([2, 1], torch.Generator().manual_seed(0), x.device)
    start = [tensor.clone() for tensor in layers[0]]

    def away(layers):
        return (run(layers, x).squeeze(-1) - y).square().mean()

    def stay(layers):
        return (layers[0][0] - start[0]).square().sum() + 1

    with deterministic():
        reached = train_lbfgs(layers, away, 0.0, stay)
    assert reached == pytest.approx(float(stay(layers)))
    assert float(away(layers)) < float(away([(start[0], start[1])]))


def test_a_network_learns_what_helps_and_is_zero_where_nothing_does():
    x, y = make_line()
    correct = torch.arange(400) % 2 == 0

    def loss_for(rows):
        return lambda output: (output - y[rows]).square().mean()

    layers = fit_network(x, correct, loss_for, (5,), seed=0, decays=(1e-3,))
    assert float((run(layers, x).squeeze(-1) - y).square().mean()) < 0.05 * float(y.var())

    def useless(rows):
        return lambda output: output.square().mean() + 1

    layers = fit_network(x, correct, useless, (5,), seed=0)
    assert float(run(layers, x).abs().max()) == 0


def train_line(held_loss=None, epochs=60, patience=10):
    x, y = make_line()
    layers = draw_layers([2, 1], torch.Generator().manual_seed(0), x.device)
    calls = []

    def loss_of(rows):
        calls.append(len(rows))
        return (run(layers, x[rows]).squeeze(-1) - y[rows]).square().mean()

    with deterministic():
        train_adam(
            list(layers[0]),
            loss_of,
            torch.arange(400),
            epochs=epochs,
            batch_size=150,
            learning_rate=0.05,
            generator=torch.Generator().manual_seed(0),
            held_loss=None if held_loss is None else lambda: held_loss(layers),
            patience=patience,
        )
    return layers, calls, float(loss_of(torch.arange(400)))


def test_adam_goes_through_all_rows_every_epoch():
    _, calls, loss = train_line()
    assert calls[:3] == [150, 150, 100] and len(calls) == 3 * 60 + 1
    assert loss < 0.01


def test_adam_stops_when_the_held_out_loss_no_longer_falls_and_restores_the_best():
    seen = []

    def rising(layers):
        seen.append([tensor.clone() for tensor in layers[0]])
        return [3.0, 1.0, 2.0, 1.5, 1.2, 9.0][len(seen) - 1]

    layers, calls, _ = train_line(rising, patience=4)
    assert len(seen) == 6 and len(calls) == 3 * 6 + 1
    assert torch.equal(layers[0][0], seen[1][0]) and torch.equal(layers[0][1], seen[1][1])
    assert not layers[0][0].requires_grad


def test_threads_and_gradients_are_as_before_afterwards():
    threads = torch.get_num_threads()
    with torch.no_grad(), pytest.raises(RuntimeError), deterministic():
        assert torch.get_num_threads() == 1 and torch.is_grad_enabled()
        raise RuntimeError
    with single_threaded():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads


def test_held_out_rows_stop_the_training_and_never_train(monkeypatch):
    x, y = make_line()
    correct = torch.arange(400) % 2 == 0
    _, held = stratified_split(correct, seed=0)
    trained_on = []

    def loss_for(rows):
        def loss_of(output):
            if output.requires_grad:
                output.register_hook(lambda slope: trained_on.append(rows))
            return (output - y[rows]).square().mean()

        return loss_of

    def count_trained():
        trained_on.clear()
        fit_network(x, correct, loss_for, (5,), seed=0, decays=(1e-3,))
        rows = torch.cat(trained_on).unique()
        assert not torch.isin(held, rows).any()
        return len(rows), max(map(len, trained_on))

    assert count_trained() == (320, 320)
    # Where networks compete on a part of the rows, the winner goes on with all but the held-out.
    monkeypatch.setattr(networks, "SUBSAMPLE", 100)
    assert count_trained() == (320, 320)


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
