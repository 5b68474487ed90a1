"""Probabilities that follow an adapted confidence, in closed form."""

import pytest
import torch

from rightly.calibrators.shift_adaptation import match_confidence
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.temperature import scaled_softmax


def make_rows(c=10, n=200):
    logits = 3 * torch.randn(n, c, generator=torch.Generator().manual_seed(0))
    return logits, logits.double().softmax(-1), logits.argmax(-1)


@pytest.mark.parametrize("c", [2, 10, 300])
def test_the_class_gets_the_confidence_and_all_classes_keep_their_order(c):
    logits, p, classes = make_rows(c)
    for share in (0.01, 0.3, 0.7, 0.999):
        confidence = torch.full((len(p),), 1 / c + share * (1 - 1 / c)).double()
        matched = match_confidence(p, classes, confidence, logits)
        own = matched.gather(-1, classes[:, None]).squeeze(-1)
        torch.testing.assert_close(own, confidence)
        torch.testing.assert_close(matched.sum(-1), torch.ones(len(p)).double())
        steps = matched.gather(-1, p.argsort(-1)).diff()
        assert (steps >= 0).all() and matched.min() >= 0


def test_the_own_confidence_leaves_probabilities_as_they_are():
    logits, p, classes = make_rows()
    torch.testing.assert_close(match_confidence(p, classes, p.amax(-1), logits), p)


def test_a_confidence_below_one_over_the_classes_leaves_the_order_of_classes():
    logits, p, classes = make_rows()
    matched = match_confidence(p, classes, torch.zeros(len(p)).double(), logits)
    assert torch.equal(matched.argmax(-1), classes)
    torch.testing.assert_close(matched, torch.full_like(p, 0.1), atol=1e-5, rtol=0)


def test_masked_classes_stay_at_zero():
    logits, _, _ = make_rows()
    logits[:, ::3] = -1e9
    p, classes = logits.double().softmax(-1), logits.argmax(-1)
    for confidence in (0.2, 0.99):
        matched = match_confidence(p, classes, torch.full((len(p),), confidence).double(), logits)
        assert (matched[:, ::3] == 0).all()
        torch.testing.assert_close(matched.sum(-1), torch.ones(len(p)).double())


@pytest.mark.parametrize("case", ["certain", "uniform"])
def test_rows_without_a_slope_give_numbers(case):
    logits = torch.zeros(3, 4) if case == "uniform" else 1e4 * torch.eye(3, 4)
    p, classes = logits.double().softmax(-1), logits.argmax(-1)
    for confidence in (0.0, 0.25, 0.6, 1.0):
        matched = match_confidence(p, classes, torch.full((3,), confidence).double(), logits)
        torch.testing.assert_close(matched.sum(-1), torch.ones(3).double())
        own = matched.gather(-1, classes[:, None]).squeeze(-1)
        assert (own - max(confidence, 0.25)).abs().max() < 1e-5


def test_it_stays_close_to_a_change_of_temperature():
    logits, p, classes = make_rows()
    true = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))
    for factor in (0.6, 0.8, 0.9):
        confidence = 0.1 + factor * (p.amax(-1) - 0.1)
        tempered = scaled_softmax(p.log(), inverse_temperature_for(p.log(), confidence))
        matched = match_confidence(p, classes, confidence, logits)
        assert (matched - tempered).abs().max() < 0.06
        nll = [-each.gather(-1, true).log().mean() for each in (matched, tempered)]
        assert abs(nll[0] / nll[1] - 1) < 0.02
