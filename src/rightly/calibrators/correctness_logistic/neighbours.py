"""Calibration samples that are kept to tell whether a new one lies among those of its class."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.correctness_logistic.settings import SETTINGS
from rightly.calibrators.solvers.execution import iterate_blocks
from rightly.tensor_shapes import Features, Labels, PerSample, Reference


class Neighbours(NamedTuple):
    """Features of samples whose true classes are known."""

    features: Reference  # of unit length
    classes: Labels
    image: Labels | None = None  # numbers of the images they come from

    @staticmethod
    def of(features: Features, labels: Labels, image: Labels | None = None) -> "Neighbours":
        return Neighbours(functional.normalize(features.float(), dim=-1), labels, image)

    def log_distance_ratio(
        self, features: Features, classes: Labels, image: Labels | None = None
    ) -> PerSample:
        """Log of the cosine distance to the nearest of other classes over that to the same class.

        A sample from an image that is among the neighbours does not count that one: all samples
        of one image are near each other.
        """
        bound = SETTINGS.max_log_distance_ratio
        unit = functional.normalize(features.float(), dim=-1)
        parts = []
        for rows in iterate_blocks(unit):
            distance = (1 - unit[rows] @ self.features.T).clamp_min(1e-6)
            if image is not None and self.image is not None:
                itself = image[rows, None] == self.image
                distance = torch.where(itself, torch.inf, distance)
            is_same = self.classes == classes[rows, None]
            same, other = (
                _mean_of_nearest(torch.where(chosen, distance, torch.inf))
                for chosen in (is_same, ~is_same)
            )
            parts.append((other.log() - same.log()).clamp(-bound, bound))
        return torch.cat(parts).double()


def _mean_of_nearest(distance: Tensor) -> PerSample:
    """Mean of the smallest distances; 2, the largest cosine distance, where there are too few."""
    nearest = distance.topk(min(SETTINGS.nearest, distance.shape[1]), largest=False).values
    return nearest.clamp_max(2.0).mean(-1)
