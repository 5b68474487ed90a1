"""Proximity: where the Bayes estimate is known."""

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions
from tests.conftest import make


def test_noise_features_leave_the_bayes_estimate_of_confidence():
    rng = np.random.default_rng(0)
    s = rng.uniform(0.5, 0.99, 6000)
    labels = np.where(rng.random(6000) < s, 0, 1)
    predictions = Predictions(
        np.stack([np.log(s), np.log(1 - s)], 1), features=rng.normal(size=(6000, 4))
    )
    fitted = rightly.calibrator("proximity").fit(predictions[:4000], labels[:4000])
    confidence = fitted.confidence(predictions[4000:]).numpy()
    assert np.abs(confidence - s[4000:]).mean() < 0.04


def test_far_from_everything_the_raw_confidence_stays():
    predictions, labels = make(n=200)
    fitted = rightly.calibrator("proximity").fit(predictions, labels)
    alien = Predictions(torch.tensor([[5000.0] + [0.0] * 9]), features=-torch.ones(1, 16))
    assert float(fitted.confidence(alien)) == pytest.approx(1.0)


def test_the_bin_variant_moves_confidence_halfway_to_the_bins_accuracy():
    predictions, labels = make(n=4000)
    fitted = rightly.calibrator("proximity_bins").fit(predictions, labels)
    raw = float(predictions.confidence.mean())
    accuracy = float(predictions.correct(labels).double().mean())
    now = float(fitted.confidence(predictions).mean())
    assert now == pytest.approx((raw + accuracy) / 2, abs=0.01)
