"""The class-conditional autoencoder: against torch and SciPy."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

import rightly
from rightly import Predictions
from rightly.calibrators.adaptive_temperature_scaling import _divergence, _log_normal
from tests.conftest import make


def test_the_divergence_is_torchs():
    a, b, s, t = (torch.rand(5, 3, generator=torch.Generator().manual_seed(i)) for i in range(4))
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(a, s + 0.1), torch.distributions.Normal(b, t + 0.1)
    ).sum(-1)
    torch.testing.assert_close(_divergence(a, s + 0.1, b, t + 0.1), expected)
    assert float(_divergence(a, s + 0.1, a, s + 0.1).abs().max()) < 1e-6


def test_log_densities_are_scipys_up_to_a_constant():
    g = torch.Generator().manual_seed(0)
    code, mean = torch.randn(4, 3, generator=g), torch.randn(2, 3, generator=g)
    raw = torch.rand(2, 3, generator=g)
    found = _log_normal(code, mean, raw)
    spread = torch.nn.functional.softplus(raw)
    for k in range(2):
        expected = multivariate_normal(mean[k], np.diag(spread[k] ** 2)).logpdf(code)
        np.testing.assert_allclose(
            found[:, k] - 1.5 * np.log(2 * np.pi), expected, rtol=1e-4, atol=1e-4
        )


def test_constant_features_leave_temperature_scaling():
    predictions, labels = make(n=1500)
    flat = Predictions(predictions.logits, features=torch.ones(1500, 4))
    adaptive = rightly.calibrator("adaptive_temperature_scaling").fit(flat, labels)
    plain = rightly.calibrator("temperature_scaling").fit(flat, labels)
    one, two = adaptive.temperature(flat), plain.temperature(flat)
    assert float(one.std()) < 1e-6
    assert float(one[0]) == pytest.approx(float(two[0]), rel=0.1)
