"""The control that predicts correctness without a temperature."""

import torch

import rightly
from rightly import Predictions, metrics
from tests.conftest import make


def test_it_sees_the_images_own_log_odds():
    predictions, labels = make(n=3000)
    noise = torch.randn(3000, 3, 10, generator=torch.Generator().manual_seed(1))
    useless = Predictions(predictions.logits, noise)
    fitted = rightly.calibrator("correctness_network").fit(useless[:2000], labels[:2000])
    correct = useless.correct(labels)[2000:]
    own = metrics.auroc(useless.confidence[2000:], correct)
    assert metrics.auroc(fitted.confidence(useless[2000:]), correct) > own - 0.03
