"""Random features: a hidden layer that is drawn, not trained (Rahimi and Recht, 2008)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.settings import SETTINGS, Settings
from rightly.tensor_shapes import Features


@dataclass(frozen=True)
class RandomFeatures:
    """silu(x W + b) of standardised, clipped columns x, with W and b drawn from a normal law.

    Only their weights in the regression are fitted, by the same exact solution as those of all
    other columns: what a small network learns, without its dependence on steps, batches and
    devices.
    """

    centre: Tensor
    scale: Tensor
    weights: Tensor
    biases: Tensor
    max_deviation: float = SETTINGS.max_deviation

    @staticmethod
    def draw(columns: Features, settings: Settings = SETTINGS) -> "RandomFeatures":
        """Features for columns of which these are typical."""
        scale, centre = torch.std_mean(columns, 0, correction=0)
        scale = torch.where(scale > 1e-9, scale, torch.ones_like(scale))
        width, count = columns.shape[1], settings.random_features
        generator = torch.Generator().manual_seed(settings.seed)
        weights = torch.randn(width, count, generator=generator, dtype=torch.float64)
        biases = torch.randn(count, generator=generator, dtype=torch.float64)
        return RandomFeatures(
            centre,
            scale,
            (weights * (settings.random_feature_gain / width**0.5)).to(columns.device),
            biases.to(columns.device),
            settings.max_deviation,
        )

    def append_to(self, columns: Features) -> Tensor:
        """The columns, followed by their random features."""
        x = ((columns - self.centre) / self.scale).clamp(-self.max_deviation, self.max_deviation)
        return torch.cat([columns, functional.silu(x @ self.weights + self.biases)], 1)
