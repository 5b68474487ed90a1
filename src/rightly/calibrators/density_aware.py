"""Density-aware calibration (DAC; Tomani et al., 2023): hotter where features are far from known.

The temperature is a weighted sum of distances to the k-th nearest calibration sample, one distance
a layer, and a constant. The authors look at training data in the place of calibration data.
"""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from rightly.calibrators.families import TEMPERATURE_SPREAD, PerSampleTemperatureCalibrator
from rightly.calibrators.solvers import lbfgs
from rightly.calibrators.solvers.execution import iterate_blocks, single_threaded
from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import POSITIVE, Stored
from rightly.losses import squared_error
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample, Reference

NEIGHBOURS = 10
REACH = 1e3  # how far a temperature may lie from that of temperature scaling, to both sides


@final
class DensityAware(PerSampleTemperatureCalibrator):
    """T = w0 + Σ w_l d_l, all w at least 0, fitted by squared error.

    `feature_layers` are the widths of the layers that features were concatenated from; without,
    all features are one layer.
    """

    needs = ("features",)
    stores = TEMPERATURE_SPREAD | {
        "reference": Stored("n d"),
        "weights": Stored("l", low=0),
        "constant": Stored(low=POSITIVE),
    }

    reference: Tensor
    weights: Tensor
    constant: Tensor

    def __init__(
        self, neighbours: int = NEIGHBOURS, feature_layers: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        if neighbours < 1:
            raise ValueError(f"neighbours must be at least 1, got {neighbours}")
        if feature_layers is not None and (not feature_layers or min(feature_layers) < 1):
            raise ValueError(
                "feature_layers must be the widths of the layers, each at least 1, got "
                f"{list(feature_layers)}"
            )
        self.neighbours = neighbours
        self.feature_layers = None if feature_layers is None else tuple(feature_layers)

    def learn_temperature(self, predictions: Predictions, labels: Labels) -> None:
        unit = self._scale_layers(predictions)
        logits = predictions.logits
        distances = self._distances(unit, unit, skip_self=True)
        inverse = nll_inverse_temperature(logits, labels)
        data = CalibrationData.of(logits, labels, inverse / REACH, inverse * REACH)

        def loss(point: Tensor) -> Tensor:
            temperature = (point[0] + distances @ point[1:]) / inverse
            return squared_error.of(data.scores(-temperature.log()))

        # In units of temperature scaling's: half of it from the distances to begin with.
        mean = float(distances.mean()) or 1.0
        layers = distances.shape[1]
        start = distances.new_tensor([0.5, *layers * [0.5 / mean / layers]])
        bounds = [(2 / REACH, REACH / 2), *layers * [(0.0, REACH / 2)]]
        with single_threaded():
            found = lbfgs.minimise(lbfgs.differentiate(loss), start, bounds).x
        self.store(
            reference=unit.float(),
            constant=found[0] / inverse,
            weights=found[1:] / inverse,
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        unit = self._scale_layers(predictions)
        distances = self._distances(unit, self.reference.double(), skip_self=False)
        return self.constant + distances @ self.weights

    @property
    def fit_note(self) -> str:
        return super().fit_note or ("" if self.feature_layers else "one layer of features")

    def _scale_layers(self, predictions: Predictions) -> Features:
        """Each layer scaled to unit length."""
        assert predictions.features is not None
        features = predictions.features.double()
        layers = self.feature_layers or (features.shape[1],)
        if sum(layers) != features.shape[1]:
            raise ValueError(
                f"feature_layers must sum to the columns of features, {features.shape[1]}, "
                f"got {list(layers)}"
            )
        return torch.cat([normalize(part, dim=-1) for part in features.split(layers, 1)], 1)

    def _distances(self, points: Features, reference: Reference, *, skip_self: bool) -> Tensor:
        """To the k-th nearest of the reference, a column a layer."""
        layers = self.feature_layers or (points.shape[1],)
        k = min(self.neighbours, len(reference) - skip_self)
        if k < 1:  # one sample has no neighbour
            return points.new_zeros(len(points), len(layers))
        columns = []
        for own, others in zip(points.split(layers, 1), reference.split(layers, 1), strict=True):
            parts = []
            for rows in iterate_blocks(own):
                squared = 2 - 2 * own[rows] @ others.T  # unit length on both sides
                if skip_self:
                    squared.diagonal(rows.start).fill_(torch.inf)
                nearest = squared.topk(k, largest=False).values
                parts.append(nearest[:, -1].clamp_min(0).sqrt())
            columns.append(torch.cat(parts))
        return torch.stack(columns, 1)
