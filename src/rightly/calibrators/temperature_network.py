"""A temperature per sample, predicted by a small network from evidence (Liu et al., ICML 2025).

With `view_scores` and `correctness_aware` this is the paper's method; the rows of its ablation,
and Parameterized Temperature Scaling (Tomani et al., ECCV 2022), are other arguments.
"""

import math
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

from rightly import losses
from rightly.calibrators.evidence import EVIDENCE
from rightly.calibrators.families import TEMPERATURE_SPREAD, PerSampleTemperatureCalibrator
from rightly.calibrators.solvers.execution import deterministic
from rightly.calibrators.solvers.networks import (
    DECAYS,
    compute_centre_scale,
    draw_layers,
    fit_network,
    pack,
    parameters,
    run,
    train_adam,
    unpack,
)
from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.calibrators.solvers.temperature import approximate_inverse_temperature
from rightly.calibrators.stored_tensors import NETWORK, SCALE, Stored
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample

RANGE = math.log(16)  # log T moves this far around the best global one: flat .. one-hot
CLAMP = (0.1, 10.0)  # the released code's


@final
class TemperatureNetwork(PerSampleTemperatureCalibrator):
    """Fully connected layers turn evidence into a temperature, trained to convergence."""

    stores = TEMPERATURE_SPREAD | {
        "log_temperature": Stored(),
        "centre": Stored("k"),
        "scale": SCALE,
        "network_*": NETWORK,
    }

    def __init__(
        self,
        evidence: str = "view_scores",
        loss: str = "correctness_aware",
        *,
        k: int | None = None,
        hidden: Sequence[int] = (5,),
        decays: Sequence[float] = DECAYS,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.needs = EVIDENCE.find(evidence).needs
        self.is_pointwise = EVIDENCE.find(evidence).is_pointwise
        losses.loss(loss)  # an unknown name is refused here, not after minutes of work
        self.evidence, self.loss, self.k = evidence, loss, k
        self.hidden, self.decays, self.seed = tuple(hidden), tuple(decays), seed

    def learn_temperature(self, predictions: Predictions, labels: Labels) -> None:
        loss, x = losses.loss(self.loss), _compute_evidence(self.evidence, self.k, predictions)
        inverse = approximate_inverse_temperature(predictions.logits, labels, loss)
        reach = math.exp(RANGE)
        data = CalibrationData.of(predictions.logits, labels, inverse / reach, inverse * reach)
        centre, scale = compute_centre_scale(x)

        def loss_for(rows: Tensor) -> Callable[[Tensor], Tensor]:
            subset = data.take(rows)
            return lambda output: loss.of(subset.scores(math.log(inverse) - _bound(output)))

        layers = fit_network(
            (x - centre) / scale,
            data.correct,
            loss_for,
            self.hidden,
            self.seed,
            self.decays,
            predictions.image,
        )
        self.store(
            log_temperature=torch.tensor(-math.log(inverse), dtype=torch.float64),
            centre=centre,
            scale=scale,
            **pack("network", layers),
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        tensors = self.stored()
        x = _compute_evidence(self.evidence, self.k, predictions)
        standardised = (x - tensors["centre"]) / tensors["scale"]
        output = run(unpack("network", tensors), standardised).squeeze(-1)
        return (tensors["log_temperature"] + _bound(output)).exp()


@final
class ReleasedTemperatureNetwork(PerSampleTemperatureCalibrator):
    """The same, trained as the paper's released code does.

    Raw evidence, T = clamp(output), default initialisation, Adam 1e-4, batches of 1000, a fixed
    number of epochs.
    """

    stores = TEMPERATURE_SPREAD | {"network_*": NETWORK}

    def __init__(
        self,
        evidence: str = "view_scores",
        loss: str = "balanced_correctness_aware",
        *,
        epochs: int = 10,
        k: int | None = None,
        hidden: Sequence[int] = (5,),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.needs = EVIDENCE.find(evidence).needs
        self.is_pointwise = EVIDENCE.find(evidence).is_pointwise
        losses.loss(loss)
        self.evidence, self.loss, self.k = evidence, loss, k
        self.epochs, self.hidden, self.seed = epochs, tuple(hidden), seed

    def learn_temperature(self, predictions: Predictions, labels: Labels) -> None:
        loss, x = losses.loss(self.loss), _compute_evidence(self.evidence, self.k, predictions)
        data = CalibrationData.of(predictions.logits, labels, 1 / CLAMP[1], 1 / CLAMP[0])
        generator = torch.Generator().manual_seed(self.seed)
        layers = draw_layers([x.shape[1], *self.hidden, 1], generator, x.device)

        def loss_of(rows: Tensor) -> Tensor:
            temperature = run(layers, x[rows]).squeeze(-1).clamp(*CLAMP)
            return loss.of(data.take(rows).scores(-temperature.log()))

        with deterministic():
            train_adam(
                parameters(layers),
                loss_of,
                torch.arange(len(x), device=x.device),
                epochs=self.epochs,
                batch_size=1000,
                learning_rate=1e-4,
                generator=generator,
            )
        self.store(**pack("network", layers))

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        x = _compute_evidence(self.evidence, self.k, predictions)
        return run(unpack("network", self.stored()), x).squeeze(-1).clamp(*CLAMP)


def _compute_evidence(name: str, k: int | None, predictions: Predictions) -> Features:
    return EVIDENCE[name](predictions, **({} if k is None else {"k": k}))


def _bound(output: Tensor) -> Tensor:
    """A smooth clamp to -RANGE..RANGE with slope 1 at 0, so that no start is dead."""
    return RANGE * (output / RANGE).tanh()
