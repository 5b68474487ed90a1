"""Confidence corrected by proximity to the calibration data (Xiong et al., 2023, ProCal).

Densities are estimated over log-odds of the confidence by default, over the confidence itself by
the authors: confidence piles up at 1, where a kernel spills over. Proximity is the mean of
exp(-squared distance) to the ten nearest calibration samples, with features scaled to unit length
(the authors' code; their text has exp(-mean distance)).
"""

from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.base import Calibrator
from rightly.calibrators.solvers.execution import iterate_blocks
from rightly.calibrators.solvers.piecewise import count_below
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample, Reference

COORDINATES = ("log_odds", "confidence")  # ours, the authors'

NEIGHBOURS = 10
MIN_LOG_DENSITY = -25.0  # no calibration sample is near: the raw confidence stays
BINS = 10  # quantiles of confidence and of proximity, each
SHRINKAGE = 0.5


@final
class Proximity(Calibrator):
    """Density ratio of right to wrong samples at (coordinate of the confidence, proximity)."""

    needs = ("features",)
    stores = {
        "reference": Stored("n d"),
        "right": Stored("r 2"),
        "wrong": Stored("w 2"),
        "*_width": Stored("2", low=POSITIVE),
    }

    def __init__(self, coordinate: str = "log_odds") -> None:
        super().__init__()
        if coordinate not in COORDINATES:
            expected = " or ".join(map(repr, COORDINATES))
            raise ValueError(f"coordinate must be {expected}, got {coordinate!r}")
        self.coordinate = coordinate

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        unit = _unit_features(predictions)
        points = self._place(predictions, _proximity(unit, unit, skip_self=True))
        correct = predictions.classes == labels
        self.store(reference=unit.float())
        for side, subset in (("right", points[correct]), ("wrong", points[~correct])):
            # Normal-reference rule for two dimensions; a spread of 0 would make a spike.
            spread = subset.std(0, correction=0) if len(subset) else points.std(0, correction=0)
            spread = torch.where(spread > 1e-9, spread, torch.ones_like(spread))
            width = 1.06 * spread * max(len(subset), 1) ** (-1 / 6)
            self.store(**{side: subset, f"{side}_width": width})

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        tensors = self.stored()
        unit, reference = _unit_features(predictions), tensors["reference"].double()
        near = _proximity(unit, reference, skip_self=False)
        points = self._place(predictions, near)
        right = _log_density_sum(points, tensors["right"], tensors["right_width"])
        wrong = _log_density_sum(points, tensors["wrong"], tensors["wrong_width"])
        is_far = torch.maximum(right, wrong) < MIN_LOG_DENSITY
        # Sums, not means: n_right f_right / (n_right f_right + n_wrong f_wrong).
        ratio = (right - wrong).nan_to_num(0.0, 700, -700).sigmoid()
        return torch.where(is_far, predictions.confidence, ratio)

    def _place(self, predictions: Predictions, proximity: PerSample) -> Features:
        confidence = predictions.confidence
        if self.coordinate == "log_odds":
            confidence = torch.logit(confidence.clamp(1e-12, 1 - 1e-12))
        return torch.stack([confidence, proximity], 1)


@final
class ProximityBins(Calibrator):
    """Confidence moved by the shrunken gap of its bin of (confidence, proximity).

    Bins are quantiles, which are the same in any coordinate of the confidence.
    """

    needs = ("features",)
    stores = {
        "reference": Stored("n d"),
        "*_edges": Stored(str(BINS - 1), is_ascending=True),
        "corrections": Stored(str(BINS * BINS), -1, 1),
    }

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        unit, confidence = _unit_features(predictions), predictions.confidence
        near = _proximity(unit, unit, skip_self=True)
        correct = predictions.classes == labels
        levels = torch.linspace(0, 1, BINS + 1, dtype=torch.float64, device=near.device)[1:-1]
        self.store(
            reference=unit.float(),
            confidence_edges=confidence.quantile(levels),
            proximity_edges=near.quantile(levels),
        )
        cell = self._cell(confidence, near)
        counts = torch.bincount(cell, minlength=BINS * BINS).double()
        gaps = torch.bincount(cell, correct.double() - confidence, minlength=BINS * BINS)
        self.store(corrections=SHRINKAGE * gaps / counts.clamp_min(1))

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        tensors, confidence = self.stored(), predictions.confidence
        unit, reference = _unit_features(predictions), tensors["reference"].double()
        near = _proximity(unit, reference, skip_self=False)
        return (confidence + tensors["corrections"][self._cell(confidence, near)]).clamp(0, 1)

    def _cell(self, confidence: Tensor, near: Tensor) -> Tensor:
        tensors = self.stored()
        row = count_below(tensors["confidence_edges"], confidence)
        return row * BINS + count_below(tensors["proximity_edges"], near)


def _unit_features(predictions: Predictions) -> Features:
    assert predictions.features is not None
    return functional.normalize(predictions.features.double(), dim=-1)


def _proximity(points: Features, reference: Reference, *, skip_self: bool) -> PerSample:
    k = min(NEIGHBOURS, len(reference) - skip_self)
    if k < 1:
        raise ValueError(f"proximity needs at least 2 calibration samples, got {len(reference)}")
    parts = []
    for rows in iterate_blocks(points):
        squared = 2 - 2 * points[rows] @ reference.T  # unit length on both sides
        if skip_self:
            squared.diagonal(rows.start).fill_(torch.inf)
        nearest = squared.topk(k, largest=False).values.clamp_min(0)
        parts.append((-nearest).exp().mean(-1))
    return torch.cat(parts)


def _log_density_sum(points: Features, kernels: Reference, width: Tensor) -> PerSample:
    """Log of the summed Gaussian kernels at each point."""
    if not len(kernels):
        return torch.full_like(points[:, 0], -torch.inf)
    scaled, centres = points / width, kernels / width
    parts = [
        (-0.5 * (scaled[rows, None] - centres).square().sum(-1)).logsumexp(-1)
        for rows in iterate_blocks(points)
    ]
    return torch.cat(parts) - width.log().sum()
