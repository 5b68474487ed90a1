"""Small fully connected networks as plain tensors: drawn from a seed, run, packed for saving."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

Layer = tuple[Tensor, Tensor]  # weight (inputs, outputs), bias (outputs,)


def draw_layers(
    sizes: Sequence[int],
    generator: torch.Generator,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
) -> list[Layer]:
    """Layers between these sizes, uniform within 1/sqrt(inputs) as torch draws a Linear."""
    layers = []
    for inputs, outputs in zip(sizes[:-1], sizes[1:], strict=True):
        bound = 1 / math.sqrt(inputs)
        weight = torch.rand(inputs, outputs, generator=generator, dtype=dtype)
        bias = torch.rand(outputs, generator=generator, dtype=dtype)
        layers.append((((2 * weight - 1) * bound).to(device), ((2 * bias - 1) * bound).to(device)))
    return layers


def run(
    layers: Sequence[Layer], x: Tensor, activation: Callable[[Tensor], Tensor] = functional.relu
) -> Tensor:
    """The network's output: linear layers with an activation between them."""
    for weight, bias in layers[:-1]:
        x = activation(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def parameters(layers: Sequence[Layer]) -> list[Tensor]:
    """Weights and biases of all layers, in order."""
    return [tensor for layer in layers for tensor in layer]


def pack(name: str, layers: Sequence[Layer]) -> dict[str, Tensor]:
    """Flat names for the tensors of a network."""
    return {
        f"{name}_{part}_{i}": tensor
        for i, layer in enumerate(layers)
        for part, tensor in zip(("weight", "bias"), layer, strict=True)
    }


def unpack(name: str, tensors: Mapping[str, Tensor]) -> list[Layer]:
    """The network that was packed under this name."""
    layers: list[Layer] = []
    while f"{name}_weight_{len(layers)}" in tensors:
        i = len(layers)
        weight, bias = tensors[f"{name}_weight_{i}"], tensors[f"{name}_bias_{i}"]
        if weight.ndim != 2 or bias.shape != weight.shape[1:]:
            raise ValueError(
                f"{name}_weight_{i} and {name}_bias_{i} must be (inputs, outputs) and (outputs,), "
                f"got {tuple(weight.shape)} and {tuple(bias.shape)}"
            )
        layers.append((weight, bias))
    return layers


def compute_centre_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column; 1 for the deviation of a constant column."""
    scale = x.std(0, correction=0)
    return x.mean(0), torch.where(scale > 1e-12, scale, torch.ones_like(scale))
