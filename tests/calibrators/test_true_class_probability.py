"""The regression of the true class's probability."""

import rightly
from rightly import Predictions
from tests.conftest import make


def test_it_can_learn_its_target():
    predictions, labels = make(n=2000)
    target = predictions.logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
    telling = Predictions(predictions.logits, features=target.logit()[:, None])
    fitted = rightly.calibrator("true_class_probability").fit(telling, labels)
    assert float((fitted.confidence(telling) - target).abs().mean()) < 0.05
