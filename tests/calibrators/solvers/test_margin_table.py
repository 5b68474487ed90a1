"""The table of margins, against sums over all classes."""

import math

import pytest
import torch

from rightly.calibrators.solvers.execution import Scratch
from rightly.calibrators.solvers.margin_table import log_sum, log_sum_others, tabulate, top_two
from rightly.calibrators.solvers.scaled_scores import CalibrationData


def draw(n, c, scale, seed):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("c", [2, 50, 1000])
def test_the_table_reproduces_confidence_and_its_slope(c):
    logits = draw(400, c, 3, c).float()
    data = CalibrationData.exact(logits, torch.zeros(400, dtype=torch.int64))
    table = tabulate(logits, 1 / 16, 16.0)
    places = torch.linspace(-math.log(16), math.log(16), 400).double().requires_grad_()
    margin = table.margin(places)
    exact = data.margins.margin(places)
    miss = (margin.sigmoid() - exact.sigmoid()).detach().abs()
    assert float(miss.max()) < 1e-3
    assert float(miss.mean()) < 2e-5
    (slope,) = torch.autograd.grad(margin.sigmoid().sum(), places)
    (true_slope,) = torch.autograd.grad(exact.sigmoid().sum(), places)
    torch.testing.assert_close(slope, true_slope, atol=5e-3, rtol=0)


def test_the_sum_over_others_leaves_out_the_largest_and_has_its_slope():
    z = draw(50, 6, 2, 0)
    b = torch.linspace(0.2, 3, 50).double().requires_grad_()
    value, slope = log_sum_others(z, top_two(z), b.detach(), Scratch())
    others = z.scatter(1, z.argmax(-1, keepdim=True), -1e9)
    second = z.topk(2).values[:, 1]
    expected = (b[:, None] * (others - second[:, None])).logsumexp(-1)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(slope, torch.autograd.grad(expected.sum(), b)[0])


def test_the_log_sum_follows_from_the_margin():
    z = draw(50, 6, 2, 1)
    gaps = z - z.amax(-1, keepdim=True)
    margin = torch.logit(z.softmax(-1).amax(-1))
    torch.testing.assert_close(log_sum(margin), gaps.logsumexp(-1))


def test_beyond_its_ends_the_table_stays_at_them():
    z = draw(20, 50, 2, 2)
    table = tabulate(z, 0.5, 2.0)
    low, lower = (table.margin(torch.full((20,), math.log(b)).double()) for b in (0.5, 0.25))
    # L is constant beyond the table, the gap's part is not.
    gap = z.topk(2).values.diff().squeeze(-1).abs()
    torch.testing.assert_close(low - lower, 0.25 * gap)
