"""What the temperature arithmetic promises, against direct computation."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rightly.calibrators.solvers import margin_table as scaling
from rightly.calibrators.solvers.scaled_scores import Calibrating
from rightly.losses import LOSSES, ExactScores
from tests.conftest import make


def some_logits(n, c, scale, seed):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("c", [2, 3, 10, 300])
def test_a_temperature_is_found_for_every_confidence(c):
    logits = some_logits(500, c, 3, c)
    wanted = torch.linspace(1 / c + 1e-4, 1 - 1e-9, 500).double()
    inverse = scaling.inverse_temperature_for(logits, wanted)
    torch.testing.assert_close(scaling.top_probability(logits, inverse), wanted)


def test_a_confidence_below_uniform_gives_an_all_but_uniform_row():
    logits = torch.tensor([[2.0, 1.0, 0.0], [1e4, 0.0, -1e4]])
    inverse = scaling.inverse_temperature_for(logits, torch.tensor([0.1, 0.0]).double())
    rows = scaling.keep_class(scaling.scaled_softmax(logits, inverse), logits.argmax(-1))
    assert torch.isfinite(inverse).all() and (inverse > 0).all()
    torch.testing.assert_close(rows, torch.full_like(rows, 1 / 3), atol=1e-5, rtol=0)
    assert rows.argmax(-1).tolist() == [0, 0]


def test_ties_and_constant_rows_have_a_temperature():
    logits = torch.tensor([[1.0, 1.0, 0.0], [3.0, 3.0, 3.0]])
    inverse = scaling.inverse_temperature_for(logits, torch.tensor([0.9, 0.9]).double())
    assert torch.isfinite(inverse).all() and (inverse > 0).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(0, 1000), st.sampled_from([0.01, 1.0, 100.0, 1e4]))
def test_the_found_temperature_gives_the_confidence_at_any_scale(c, seed, scale):
    logits = some_logits(20, c, scale, seed)
    wanted = torch.rand(20, generator=torch.Generator().manual_seed(seed)).double()
    wanted = 1 / c + (1 - 1 / c) * (0.01 + 0.98 * wanted)
    inverse = scaling.inverse_temperature_for(logits, wanted)
    torch.testing.assert_close(scaling.top_probability(logits, inverse), wanted, atol=1e-9, rtol=0)


def test_a_lost_class_is_put_back_on_top_even_in_single_precision():
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5]]).double()
    kept = scaling.keep_class(rows, torch.tensor([1, 1, 2]))
    assert kept.argmax(-1).tolist() == [1, 1, 2]
    assert kept.float().argmax(-1).tolist() == [1, 1, 2]
    torch.testing.assert_close(kept.sum(-1), torch.ones(3).double())
    assert torch.equal(kept[2], rows[2])


def test_moments_agree_with_autograd():
    logits = some_logits(200, 7, 2, 0)
    found = scaling.moments(logits, 0.7)
    gaps = logits - logits.amax(-1, keepdim=True)
    p = (0.7 * gaps).softmax(-1)
    mean = (p * gaps).sum(-1)
    torch.testing.assert_close(found.log_sum, (0.7 * gaps).logsumexp(-1))
    torch.testing.assert_close(found.mean, mean)
    torch.testing.assert_close(found.variance, (p * gaps.square()).sum(-1) - mean.square())


@pytest.mark.parametrize("c", [2, 50, 1000])
def test_the_table_reproduces_confidence_and_its_slope(c):
    logits = some_logits(400, c, 3, c).float()
    data = Calibrating.of(logits, torch.zeros(400, dtype=torch.int64), 1 / 16, 16.0)
    table = scaling.tabulate(logits, 1 / 16, 16.0)
    places = torch.linspace(-math.log(16), math.log(16), 400).double().requires_grad_()
    margin = table.margin(places)
    exact = data.exactly().margins.margin(places)
    miss = (margin.sigmoid() - exact.sigmoid()).detach().abs()
    assert float(miss.max()) < 1e-3
    assert float(miss.mean()) < 2e-5
    (slope,) = torch.autograd.grad(margin.sigmoid().sum(), places)
    (true_slope,) = torch.autograd.grad(exact.sigmoid().sum(), places)
    torch.testing.assert_close(slope, true_slope, atol=5e-3, rtol=0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("c", [5, 100])
def test_losses_from_margins_equal_losses_from_logits(name, c):
    predictions, labels = make(n=200, c=c)
    logits = predictions.logits.double()
    log_inverse = torch.linspace(-1, 1, 200).double().requires_grad_()
    data = Calibrating.of(logits, labels, 0.1, 10.0)
    fast = LOSSES[name].of(data.scores(log_inverse))
    slow = LOSSES[name].of(ExactScores(logits * log_inverse.exp()[:, None], labels))
    torch.testing.assert_close(fast, slow, atol=2e-5, rtol=0)
    (one,), (two,) = (torch.autograd.grad(value, log_inverse) for value in (fast, slow))
    torch.testing.assert_close(one, two, atol=5e-5, rtol=0)
