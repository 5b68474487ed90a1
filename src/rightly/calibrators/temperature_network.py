"""A temperature per sample, predicted by a small network from evidence of correctness.

With `view_scores` and `correctness_aware` this is the paper's method; the rows of its ablation,
and Parameterized Temperature Scaling (Tomani et al., ECCV 2022), are other arguments.
"""

import math
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

from rightly import losses
from rightly.calibrators.base import TemperatureCalibrator
from rightly.calibrators.evidence import BATCHED, EVIDENCE, needs_of
from rightly.calibrators.solvers.mlp import (
    draw_layers,
    pack,
    parameters,
    run,
    standardisation,
    unpack,
)
from rightly.calibrators.solvers.optimise import adam, fit_network, repeatably
from rightly.calibrators.solvers.scaled_scores import Calibrating
from rightly.calibrators.temperature_scaling import rough_inverse_temperature
from rightly.predictions import Predictions
from rightly.tensor_shapes import Features, Labels, PerSample

RANGE = math.log(16)  # log T moves this far around the best global one: flat .. one-hot
CLAMP = (0.1, 10.0)  # the released code's


@final
class TemperatureNetwork(TemperatureCalibrator):
    """Fully connected layers turn evidence into a temperature.

    Trained to convergence by default. `released_epochs` instead trains as the paper's released
    code does: raw evidence, T = clamp(output), default initialisation, Adam 1e-4, batches of 1000,
    and that many epochs.
    """

    def __init__(
        self,
        evidence: str = "view_scores",
        loss: str = "correctness_aware",
        *,
        k: int | None = None,
        hidden: Sequence[int] = (5,),
        released_epochs: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.needs = needs_of(evidence)
        self.is_pointwise = evidence not in BATCHED
        losses.loss(loss)  # an unknown name is refused here, not after minutes of work
        self.evidence, self.loss, self.k = evidence, loss, k
        self.hidden, self.released_epochs, self.seed = tuple(hidden), released_epochs, seed

    def _fit(self, predictions: Predictions, labels: Labels) -> None:
        x = self._evidence(predictions)
        if self.released_epochs is None:
            self._fit_converged(predictions, labels, x)
        else:
            self._fit_as_released(predictions, labels, x)

    def _fit_converged(self, predictions: Predictions, labels: Labels, x: Features) -> None:
        chosen = losses.loss(self.loss)
        inverse = rough_inverse_temperature(predictions.logits, labels, chosen)
        reach = math.exp(RANGE)
        data = Calibrating.of(predictions.logits, labels, inverse / reach, inverse * reach)
        centre, scale = standardisation(x)

        def loss_for(rows: Tensor) -> Callable[[Tensor], Tensor]:
            some = data.take(rows)
            return lambda output: chosen.of(some.scores(math.log(inverse) - _bounded(output)))

        layers = fit_network(
            (x - centre) / scale,
            data.correct,
            loss_for,
            self.hidden,
            self.seed,
            image=predictions.image,
        )
        self.learn(
            log_temperature=torch.tensor(-math.log(inverse), dtype=torch.float64),
            centre=centre,
            scale=scale,
            **pack("network", layers),
        )

    def _fit_as_released(self, predictions: Predictions, labels: Labels, x: Features) -> None:
        chosen = losses.loss(self.loss)
        assert self.released_epochs is not None
        data = Calibrating.of(predictions.logits, labels, 1 / CLAMP[1], 1 / CLAMP[0])
        generator = torch.Generator().manual_seed(self.seed)
        layers = draw_layers([x.shape[1], *self.hidden, 1], generator, x.device)

        def loss_of(rows: Tensor) -> Tensor:
            temperature = run(layers, x[rows]).squeeze(-1).clamp(*CLAMP)
            return chosen.of(data.take(rows).scores(-temperature.log()))

        with repeatably():
            adam(
                parameters(layers),
                loss_of,
                torch.arange(len(x), device=x.device),
                epochs=self.released_epochs,
                batch_size=1000,
                learning_rate=1e-4,
                generator=generator,
            )
        self.learn(**pack("network", layers))

    def _temperature(self, predictions: Predictions) -> PerSample:
        tensors = self.learned()
        layers, x = unpack("network", tensors), self._evidence(predictions)
        if self.released_epochs is not None:
            return run(layers, x).squeeze(-1).clamp(*CLAMP)
        output = run(layers, (x - tensors["centre"]) / tensors["scale"]).squeeze(-1)
        return (tensors["log_temperature"] + _bounded(output)).exp()

    def _evidence(self, predictions: Predictions) -> Features:
        options = {} if self.k is None else {"k": self.k}
        return EVIDENCE[self.evidence](predictions, **options)


def _bounded(output: Tensor) -> Tensor:
    """A smooth clamp to -RANGE..RANGE with slope 1 at 0, so that no start is dead."""
    return RANGE * (output / RANGE).tanh()
