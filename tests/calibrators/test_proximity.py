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


def test_the_coordinate_is_the_authors_or_ours_and_is_saved(tmp_path):
    predictions, labels = make(n=400)
    test = make(n=400, seed=1)[0]
    confidences = {}
    for coordinate in ("log_odds", "confidence"):
        fitted = rightly.calibrator("proximity", coordinate=coordinate).fit(predictions, labels)
        confidences[coordinate] = fitted.confidence(test)
        fitted.save(tmp_path / "c.safetensors")
        again = rightly.load_calibrator(tmp_path / "c.safetensors")
        assert again.arguments == {"coordinate": coordinate}
        assert torch.equal(again.confidence(test), confidences[coordinate])
    assert float((confidences["log_odds"] - confidences["confidence"]).abs().max()) > 0.01
    with pytest.raises(ValueError, match="coordinate must be 'log_odds' or 'confidence', got 'x'"):
        rightly.calibrator("proximity", coordinate="x")


def test_the_authors_coordinate_is_a_density_ratio_over_confidence():
    predictions, labels = make(n=120)
    fitted = rightly.calibrator("proximity", coordinate="confidence").fit(predictions, labels)
    stored = fitted.stored()
    correct = predictions.correct(labels)
    for side, rows in (("right", correct), ("wrong", ~correct)):
        torch.testing.assert_close(stored[side][:, 0], predictions.confidence[rows])
