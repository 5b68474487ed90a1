"""Log-odds of classes: what a GPU computes is what a processor computes."""

import pytest
import torch

from rightly.calibrators.solvers import log_odds


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_both_ways_to_sum_give_the_same_log_odds(monkeypatch, scale):
    g = torch.Generator().manual_seed(0)
    z = scale * torch.randn(400, 7, generator=g)
    z[:20, 3] = z[:20].amax(-1)  # ties
    z[20:30, 1:] = -1e9  # all others masked
    classes = torch.where(torch.arange(400) % 2 == 0, z.argmax(-1), 2)
    classes[20:30] = 0
    here = log_odds.compute_log_odds(z, classes, 1.3)
    exact = log_odds.compute_log_odds(z.double(), classes, 1.3)
    monkeypatch.setattr(log_odds, "_compare_in_cache", log_odds._compare_on_gpu)
    there = log_odds.compute_log_odds(z, classes, 1.3)
    torch.testing.assert_close(here, exact, atol=1e-5, rtol=1e-6)
    torch.testing.assert_close(there, exact, atol=1e-5, rtol=1e-6)
