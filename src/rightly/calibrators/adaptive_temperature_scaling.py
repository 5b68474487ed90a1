"""A temperature from the density of features under each class (Joy et al., AAAI 2023).

A variational autoencoder with one Gaussian prior per class is fitted to penultimate features. A
small network reads how likely the encoded sample is under every class's prior and gives its
temperature; both are trained together on -ELBO + cross-entropy. Two deviations: the encoder's
mean stands for the sample when the calibrator is applied, so that its output is not random, and
features and log-densities are standardised, so that temperatures start near the best global one.
"""

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from rightly.calibrators.families import TEMPERATURE_SPREAD, PerSampleTemperatureCalibrator
from rightly.calibrators.solvers.execution import deterministic
from rightly.calibrators.solvers.networks import (
    Layer,
    compute_centre_scale,
    draw_layers,
    pack,
    parameters,
    run,
    train_adam,
    unpack,
)
from rightly.calibrators.solvers.temperature import nll_inverse_temperature
from rightly.calibrators.stored_tensors import NETWORK, POSITIVE, Stored
from rightly.predictions import Predictions
from rightly.predictions.rows import stratified_split
from rightly.tensor_shapes import Features, Labels, PerSample

MIN_STD = 1e-3


@final
class AdaptiveTemperatureScaling(PerSampleTemperatureCalibrator):
    """Class-conditional autoencoder on features, then a temperature network on its densities.

    The original's widths are (1024, 512, 512); the default is narrower, for a CPU.
    """

    needs = ("features",)

    stores = TEMPERATURE_SPREAD | {
        "log_temperature": Stored(),
        "centre": Stored("d"),
        "scale": Stored("d", low=POSITIVE),
        "prior_mean": Stored("c l"),
        "prior_raw_std": Stored("c l"),
        "encoder_*": NETWORK,
        "head_*": NETWORK,
    }

    def __init__(
        self,
        *,
        widths: Sequence[int] = (128, 64, 64),
        latent: int = 16,
        head: Sequence[int] = (128, 128),
        epochs: int = 40,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.widths, self.latent, self.head = tuple(widths), latent, tuple(head)
        self.epochs, self.seed = epochs, seed

    def learn_temperature(self, predictions: Predictions, labels: Labels) -> None:
        assert predictions.features is not None
        centre, scale = compute_centre_scale(predictions.features)
        x = ((predictions.features - centre) / scale).float()
        log_temperature = -math.log(nll_inverse_temperature(predictions.logits, labels))
        generator = torch.Generator().manual_seed(self.seed)
        model = _Autoencoder(x, predictions.class_count, self.widths, self.latent, generator)
        head = draw_layers(
            [predictions.class_count, *self.head, 1], generator, x.device, torch.float32
        )
        head[-1] = (head[-1][0] * 0.1, head[-1][1] * 0)
        logits = predictions.logits.float()

        def log_temperatures(code: Tensor) -> Tensor:
            densities = model.log_densities(code)
            return log_temperature + run(head, _centre_rows(densities), functional.elu).squeeze(-1)

        def cross_entropy(code: Tensor, rows: Tensor) -> Tensor:
            scaled = logits[rows] * (-log_temperatures(code)).exp()[:, None]
            return functional.cross_entropy(scaled, labels[rows])

        def loss_of(rows: Tensor) -> Tensor:
            code, elbo = model.sample(x[rows], labels[rows], generator)
            return cross_entropy(code, rows) - elbo

        train, held = stratified_split(
            predictions.classes == labels, self.seed, image=predictions.image
        )
        with deterministic():
            train_adam(
                [*model.tensors(), *parameters(head)],
                loss_of,
                train,
                epochs=self.epochs,
                batch_size=128,
                learning_rate=5e-4,
                generator=generator,
                held_loss=lambda: float(cross_entropy(model.encode(x[held])[0], held)),
                patience=10,
            )
        self.store(
            log_temperature=torch.tensor(log_temperature, dtype=torch.float64),
            centre=centre,
            scale=scale,
            prior_mean=model.prior_mean,
            prior_raw_std=model.prior_raw_std,
            **pack("encoder", model.encoder),
            **pack("head", head),
        )

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        assert predictions.features is not None
        tensors = self.stored()
        x = ((predictions.features - tensors["centre"]) / tensors["scale"]).float()
        code = _encode(unpack("encoder", tensors), x)[0]
        densities = _log_normal(code, tensors["prior_mean"], tensors["prior_raw_std"])
        output = run(unpack("head", tensors), _centre_rows(densities), functional.elu).squeeze(-1)
        return (tensors["log_temperature"] + output.double()).clamp(-20, 20).exp()


class _Autoencoder:
    """Encoder, decoder and one Gaussian prior a class."""

    def __init__(
        self,
        x: Features,
        class_count: int,
        widths: Sequence[int],
        latent: int,
        generator: torch.Generator,
    ) -> None:
        d, device = x.shape[1], x.device
        self.encoder = draw_layers([d, *widths, 2 * latent], generator, device, torch.float32)
        self.decoder = draw_layers([latent, *widths, d], generator, device, torch.float32)
        drawn = torch.randn(class_count, latent, generator=generator)
        self.prior_mean = drawn.to(device)
        self.prior_raw_std = torch.full_like(self.prior_mean, 0.54)  # softplus of this is 1

    def tensors(self) -> list[Tensor]:
        networks = [*parameters(self.encoder), *parameters(self.decoder)]
        return [*networks, self.prior_mean, self.prior_raw_std]

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return _encode(self.encoder, x)

    def sample(
        self, x: Tensor, labels: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """A draw of the code and the mean evidence lower bound (Laplace likelihood)."""
        mean, std = self.encode(x)
        code = mean + std * torch.randn(mean.shape, generator=generator).to(mean.device)
        likelihood = -(run(self.decoder, code, functional.elu) - x).abs() - math.log(2)
        prior_mean = self.prior_mean[labels]
        prior_std = _to_std(self.prior_raw_std[labels])
        return code, (likelihood.sum(-1) - _divergence(mean, std, prior_mean, prior_std)).mean()

    def log_densities(self, code: Tensor) -> Tensor:
        return _log_normal(code, self.prior_mean, self.prior_raw_std)


def _to_std(x: Tensor) -> Tensor:
    return functional.softplus(x).clamp_min(MIN_STD)


def _encode(layers: Sequence[Layer], x: Tensor) -> tuple[Tensor, Tensor]:
    mean, raw = run(layers, x, functional.elu).chunk(2, -1)
    return mean, _to_std(raw)


def _divergence(mean: Tensor, std: Tensor, other_mean: Tensor, other_std: Tensor) -> Tensor:
    """Kullback-Leibler divergence between two diagonal Gaussians."""
    ratio = std / other_std
    shift = (mean - other_mean) / other_std
    return 0.5 * (ratio.square() + shift.square() - 1 - 2 * ratio.log()).sum(-1)


def _log_normal(code: Tensor, mean: Tensor, raw_std: Tensor) -> Tensor:
    """Log-density of each code under every class's prior, up to a constant."""
    std = _to_std(raw_std)
    # Expanded so that no (n, c, latent) array is needed.
    precision = std.reciprocal().square()
    squares = code.square() @ precision.T - 2 * code @ (mean * precision).T
    return -0.5 * (squares + (mean.square() * precision).sum(-1)) - std.log().sum(-1)


def _centre_rows(densities: Tensor) -> Tensor:
    """Log-densities relative to their row, on the scale of one: they reach thousands otherwise."""
    return (densities - densities.amax(-1, keepdim=True)).clamp_min(-50) / 10
