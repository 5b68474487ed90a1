"""The mixture: against a general solver and a known law of labels."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import rightly
from rightly import Predictions, losses
from rightly.calibrators.ensemble_temperature_scaling import simplex_least_squares
from rightly.calibrators.solvers.temperature import fit_inverse_temperature
from tests.calibrators.samples import draw_labels, draw_logits


def test_training_error_only_falls():
    logits = draw_logits(3000, 5, scale=4)
    labels = draw_labels(logits / 3)
    predictions, one_hot = Predictions(logits), torch.nn.functional.one_hot(labels, 5)

    def error(p):
        return float((p - one_hot).square().mean())

    ensemble = rightly.calibrator("ensemble_temperature_scaling").fit(predictions, labels)
    inverse = fit_inverse_temperature(logits, labels, losses.squared_error)
    tempered = error((logits * inverse).softmax(-1))
    assert error(ensemble.probabilities(predictions)) <= tempered + 1e-12
    assert tempered <= error(logits.softmax(-1)) + 1e-12


def test_a_uniform_share_of_labels_is_found():
    logits = draw_logits(40_000, 6, scale=3)
    g = torch.Generator().manual_seed(4)
    uniform = torch.randint(6, (40_000,), generator=g)
    labels = torch.where(torch.rand(40_000, generator=g) < 0.3, uniform, draw_labels(logits))
    predictions = Predictions(logits)
    fitted = rightly.calibrator("ensemble_temperature_scaling").fit(predictions, labels)
    expected = 0.7 * logits.softmax(-1) + 0.3 / 6
    assert float((fitted.probabilities(predictions) - expected).abs().mean()) < 0.005


@pytest.mark.parametrize("seed", range(5))
def test_weights_agree_with_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    basis, truth = rng.random((40, 3)), rng.random(40)
    gram, target = basis.T @ basis, basis.T @ truth
    found = simplex_least_squares(gram, target)
    general = minimize(
        lambda w: w @ gram @ w - 2 * target @ w,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        tol=1e-12,
    ).x
    np.testing.assert_allclose(found, general, atol=1e-4)
    assert found.sum() == pytest.approx(1) and (found >= 0).all()
