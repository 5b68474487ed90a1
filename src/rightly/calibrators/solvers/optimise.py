"""The two training loops: full-batch L-BFGS for small networks, Adam for the larger ones.

Both are repeatable to the bit: every draw comes from a seed, and they run on one thread, because
sums over samples depend on how many threads share them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from rightly.calibrators.solvers.execution import deterministic, record_launches
from rightly.calibrators.solvers.mlp import Layer, draw_layers, parameters, run
from rightly.tensor_shapes import Features, Labels, PerSampleBool

LossOf = Callable[[Tensor], Tensor]  # row numbers -> scalar
NetworkLoss = Callable[[list[Layer]], Tensor]

HELD_OUT = 0.2
CHECK_EVERY = 5  # L-BFGS iterations: then the held-out loss is computed
ITERATIONS = 200
PATIENCE = 4  # checks without improvement
DECAYS = (0.3, 0.1, 0.03)  # strengths tried, as shares of the loss at the start
RESTARTS = 2
SUBSAMPLE = 5000  # samples on which networks compete; the winner goes on with all others too


def split_rows(
    correct: PerSampleBool, seed: int, share: float = HELD_OUT, image: Labels | None = None
) -> tuple[Tensor, Tensor]:
    """Row numbers to train on and to hold out, right and wrong samples in the same shares.

    Rows that share a number of `image` are not parted; the first of them stands for all.
    """
    if image is not None and len(image.unique()) < len(image):
        group = image.unique(return_inverse=True)[1]
        place = torch.arange(len(group), device=group.device)
        first = torch.full_like(place[: int(group.max()) + 1], len(place))
        first = first.scatter_reduce(0, group, place, "amin")
        sides = split_rows(correct[first], seed, share)
        fitted_on, judged = (torch.isin(group, side).nonzero().squeeze(-1) for side in sides)
        return fitted_on, judged
    generator = torch.Generator().manual_seed(seed)
    train, held = [], []
    for side in (True, False):
        rows = (correct.cpu() == side).nonzero().squeeze(-1)
        rows = rows[torch.randperm(len(rows), generator=generator)]
        out = round(share * len(rows))
        held.append(rows[:out])
        train.append(rows[out:])
    held_rows = torch.cat(held) if sum(map(len, held)) else torch.cat(train)
    return torch.cat(train).to(correct.device), held_rows.to(correct.device)


def fit_network(
    x: Features,
    correct: PerSampleBool,
    loss_for: Callable[[Tensor], Callable[[Tensor], Tensor]],
    hidden: Sequence[int],
    seed: int,
    decays: Sequence[float] = DECAYS,
    image: Labels | None = None,
) -> list[Layer]:
    """Trains a network of one output; `loss_for(rows)` gives the loss of outputs for these rows.

    Networks differ in their random start and in weight decay; each is stopped early on a held-out
    fifth, which also picks the winner. Where they competed on a part of the rows, the winner goes
    on with all but the held-out ones, and is stopped by these again. Outputs start near 0, where
    nothing saturates, and if no network does better on the held-out rows than an output of 0, 0 it
    is.
    """
    train, held = split_rows(correct, seed, image=image)
    generator = torch.Generator().manual_seed(seed)
    subset = train[torch.randperm(len(train), generator=generator)[:SUBSAMPLE].to(x.device)]

    def loss_on(rows: Tensor) -> NetworkLoss:
        inputs, loss_of = x[rows], loss_for(rows)
        return lambda layers: loss_of(run(layers, inputs).squeeze(-1))

    with deterministic():
        on_subset, on_held = loss_on(subset), loss_on(held)
        starts = [_draw_near_zero(x, hidden, generator) for _ in range(RESTARTS)]
        zero = [(weight * 0, bias * 0) for weight, bias in starts[0]]
        scale = _value(on_subset(zero))
        best, winner, strength = _value(on_held(zero)), zero, 0.0
        for decay in decays:
            for start in starts:
                layers = _clone(start)
                reached = minimise_lbfgs(layers, on_subset, decay * scale, on_held)
                if reached < best:
                    best, winner, strength = reached, layers, decay * scale
        # Never on the held-out rows too, with nothing left to stop it: that overfits. Brier score
        # of ca_views fitted on 300 samples 7.87 instead of 7.67, of two hidden layers on 1,000
        # samples 8.36 instead of 7.37 (CIFAR-10, means over three classifiers and five draws).
        if strength and len(subset) < len(train):
            layers, decay = _clone(winner), strength * len(subset) / len(train)
            if minimise_lbfgs(layers, loss_on(train), decay, on_held) < best:
                winner = layers
    return winner


def _clone(layers: Sequence[Layer]) -> list[Layer]:
    return [(weight.clone(), bias.clone()) for weight, bias in layers]


def _draw_near_zero(x: Features, hidden: Sequence[int], generator: torch.Generator) -> list[Layer]:
    *below, (weight, bias) = draw_layers([x.shape[1], *hidden, 1], generator, x.device)
    return [*below, (weight * 0.1, bias * 0)]


def minimise_lbfgs(
    layers: list[Layer], on_train: NetworkLoss, decay: float, on_held: NetworkLoss | None = None
) -> float:
    """Minimises loss plus decay times the squared weights, in place; returns the loss reached.

    With a held-out loss, that is the one that counts: training stops when it no longer falls,
    and the best parameters are kept. (SciPy's, because torch's takes a second to import.)
    """
    tensors = parameters(layers)
    start = torch.cat([tensor.detach().flatten() for tensor in tensors])
    best, kept, waited, iterations = float("inf"), start.cpu().numpy(), 0, 0

    def differentiate(place: Tensor) -> Tensor:
        place = place.detach().requires_grad_()
        network = _unflatten(place, layers)
        squares = torch.stack([weight.square().sum() for weight, _ in network])
        value = on_train(network) + decay * squares.sum()
        (slope,) = torch.autograd.grad(value, place)
        return torch.cat([value.detach()[None], slope])

    def measure_held_out(place: Tensor) -> Tensor:
        assert on_held is not None
        return on_held(_unflatten(place, layers)).detach()

    differentiate_at = record_launches(differentiate, start)
    held_out_at = measure_held_out if on_held is None else record_launches(measure_held_out, start)

    def value_and_slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        # One copy there and one back: on a GPU each makes the processor wait.
        answer = differentiate_at(torch.from_numpy(point).to(start.device)).cpu().numpy()
        return float(answer[0]), answer[1:]

    def compute_held_out(point: np.ndarray) -> float:
        return float(held_out_at(torch.from_numpy(point).to(start.device)))

    def check_held_out(point: np.ndarray) -> None:
        nonlocal best, kept, waited, iterations
        iterations += 1
        if on_held is None or iterations % CHECK_EVERY:
            return
        held_loss = compute_held_out(point)
        waited = 0 if held_loss < best - 1e-7 else waited + 1
        if held_loss < best:
            best, kept = held_loss, point.copy()
        if waited >= PATIENCE:
            raise StopIteration

    result = minimize(
        value_and_slope,
        kept,
        jac=True,
        method="L-BFGS-B",
        callback=check_held_out,
        options={"maxiter": ITERATIONS, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-6},
    )
    reached = float(result.fun) if on_held is None else compute_held_out(result.x)
    if reached < best:
        best, kept = reached, result.x
    parts = _unflatten(torch.from_numpy(kept).to(start.device), layers)
    for tensor, part in zip(tensors, parameters(parts), strict=True):
        tensor.copy_(part)
    return best


def _unflatten(place: Tensor, layers: Sequence[Layer]) -> list[Layer]:
    """Layers of the same sizes whose numbers are these, in the order of `parameters`."""
    tensors = parameters(layers)
    parts = place.split([tensor.numel() for tensor in tensors])
    shaped = [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]
    return list(zip(shaped[::2], shaped[1::2], strict=True))


def minimise_adam(
    parameters: Sequence[Tensor],
    loss_of: LossOf,
    train: Tensor,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
    held_loss: Callable[[], float] | None = None,
    patience: int = 10,
) -> None:
    """Adam over shuffled minibatches; with a held-out loss, stopped early at the best epoch."""
    for tensor in parameters:
        tensor.requires_grad_(True)
    optimizer = torch.optim.Adam(parameters, lr=learning_rate, foreach=False)
    best, kept, waited = float("inf"), _copy(parameters), 0
    for _ in range(epochs):
        order = torch.randperm(len(train), generator=generator).to(train.device)
        for rows in train[order].split(batch_size):
            optimizer.zero_grad()
            loss_of(rows).backward()
            optimizer.step()
        if held_loss is None:
            continue
        with torch.no_grad():
            now = held_loss()
        waited = 0 if now < best else waited + 1
        if now < best:
            best, kept = now, _copy(parameters)
        if waited >= patience:
            break
    if held_loss is not None:
        _restore(parameters, kept)
    for tensor in parameters:
        tensor.requires_grad_(False)


def _value(loss: Tensor) -> float:
    return float(loss.detach())


def _copy(parameters: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in parameters]


def _restore(parameters: Sequence[Tensor], kept: Sequence[Tensor]) -> None:
    for tensor, copy in zip(parameters, kept, strict=True):
        tensor.requires_grad_(False).copy_(copy)
