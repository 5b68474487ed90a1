"""Losses from margins, against losses from logits."""

import math

import pytest
import torch

from rightly.calibrators.solvers.scaled_scores import CalibrationData
from rightly.losses import LOSSES, ExactScores
from tests.conftest import make


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("c", [5, 100])
def test_losses_from_margins_equal_losses_from_logits(name, c):
    predictions, labels = make(n=200, c=c)
    logits = predictions.logits.double()
    log_inverse = torch.linspace(-1, 1, 200).double().requires_grad_()
    data = CalibrationData.of(logits, labels, math.exp(-1), math.exp(1))  # no further
    fast = LOSSES[name].of(data.scores(log_inverse))
    slow = LOSSES[name].of(ExactScores(logits * log_inverse.exp()[:, None], labels))
    torch.testing.assert_close(fast, slow, atol=2e-5, rtol=0)
    (one,), (two,) = (torch.autograd.grad(value, log_inverse) for value in (fast, slow))
    torch.testing.assert_close(one, two, atol=5e-5, rtol=0)


def test_a_subset_of_rows_keeps_their_scores():
    predictions, labels = make(n=60, c=50)
    data = CalibrationData.of(predictions.logits, labels, 0.1, 10.0)
    rows = torch.tensor([5, 50, 7])
    log_inverse = torch.linspace(-1, 1, 60).double()
    for every in (data, CalibrationData.exact(predictions.logits, labels)):
        whole, subset = every.scores(log_inverse), every.take(rows).scores(log_inverse[rows])
        assert torch.equal(subset.confidence, whole.confidence[rows])
        assert torch.equal(subset.true_log_probability, whole.true_log_probability[rows])
        assert torch.equal(subset.correct, whole.correct[rows])
