"""Regression of the true class's probability on features (Corbiere et al., 2019, ConfidNet).

The target is the softmax probability of the true class, not correctness: at most the raw
confidence, and less when the prediction is wrong. So this ranks predictions, but is biased low as
a probability of being right. The original trains on the classifier's training images; a post-hoc
calibrator has only the calibration set, so a fifth is held out to stop before it memorises.
"""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from rightly.calibrators.base import Calibrator
from rightly.calibrators.solvers.execution import deterministic
from rightly.calibrators.solvers.networks import (
    compute_centre_scale,
    draw_layers,
    pack,
    parameters,
    run,
    train_adam,
    unpack,
)
from rightly.calibrators.stored_tensors import NETWORK, POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.predictions.rows import stratified_split
from rightly.tensor_shapes import Labels, PerSample


@final
class TrueClassProbability(Calibrator):
    """Four hidden layers on penultimate features, a sigmoid, squared error."""

    needs = ("features",)
    sorts_rows = True
    stores = {
        "centre": Stored("d"),
        "scale": Stored("d", low=POSITIVE),
        "network_*": NETWORK,
    }

    def __init__(
        self, *, hidden: Sequence[int] = (400, 400, 400, 400), epochs: int = 60, seed: int = 0
    ) -> None:
        super().__init__()
        self.hidden, self.epochs, self.seed = tuple(hidden), epochs, seed

    def learn(self, predictions: Predictions, labels: Labels) -> None:
        assert predictions.features is not None
        centre, scale = compute_centre_scale(predictions.features)
        x = (predictions.features - centre) / scale
        target = predictions.logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
        train, held = stratified_split(
            predictions.classes == labels, self.seed, image=predictions.image
        )
        generator = torch.Generator().manual_seed(self.seed)
        layers = draw_layers([x.shape[1], *self.hidden, 1], generator, x.device, x.dtype)

        def loss_of(rows: Tensor) -> Tensor:
            return (run(layers, x[rows]).squeeze(-1).sigmoid() - target[rows]).square().mean()

        with deterministic():
            train_adam(
                parameters(layers),
                loss_of,
                train,
                epochs=self.epochs,
                batch_size=128,
                learning_rate=1e-3,
                generator=generator,
                held_loss=lambda: float(loss_of(held)),
                patience=5,
            )
        self.store(centre=centre, scale=scale, **pack("network", layers))

    def compute_confidence(self, predictions: Predictions) -> PerSample:
        assert predictions.features is not None
        tensors = self.stored()
        x = (predictions.features.to(tensors["centre"].dtype) - tensors["centre"]) / tensors[
            "scale"
        ]
        return run(unpack("network", tensors), x).squeeze(-1).sigmoid()
