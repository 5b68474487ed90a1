"""A hidden layer that is drawn, not trained: curved functions of evidence for a convex fit."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rightly.tensor_shapes import Features

FAR = 4.0  # standard deviations; farther out nothing was seen, and nothing new is claimed
SLOPE = 1.5  # how far a unit's sum typically moves when every column moves by one deviation
SEED = 0


@dataclass(frozen=True)
class RandomFeatures:
    """Sigmoid linear units of standardised columns, in random directions, with random starts.

    Only their weights are fitted, by the same exact solution as all other columns: what a small
    network learns, without its dependence on steps, batches and devices (Rahimi and Recht, 2008).
    """

    centre: Tensor
    spread: Tensor
    directions: Tensor
    starts: Tensor

    @staticmethod
    def drawn(columns: Features, count: int) -> "RandomFeatures":
        """That many, for columns of which these are typical."""
        spread, centre = torch.std_mean(columns, 0, correction=0)
        spread = torch.where(spread > 1e-9, spread, torch.ones_like(spread))
        width = columns.shape[1]
        generator = torch.Generator().manual_seed(SEED)
        directions = torch.randn(width, count, generator=generator, dtype=torch.float64)
        starts = torch.randn(count, generator=generator, dtype=torch.float64)
        return RandomFeatures(
            centre,
            spread,
            (directions * (SLOPE / width**0.5)).to(columns.device),
            starts.to(columns.device),
        )

    def __call__(self, columns: Features) -> Tensor:
        """The columns, followed by what each unit makes of them."""
        near = ((columns - self.centre) / self.spread).clamp(-FAR, FAR)
        return torch.cat([columns, functional.silu(near @ self.directions + self.starts)], 1)
