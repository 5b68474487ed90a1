"""Kernels for GPUs: what they compute, where they are used, and what happens without Triton."""

import os
from types import SimpleNamespace

import pytest
import torch

from rightly.calibrators.solvers import confidence_inverse, fused, log_odds, temperature
from tests.processes import run_python


@pytest.mark.parametrize(
    "check", ["confidence", "shared_memory", "log_odds", "inverse", "search", "extremes"]
)
def test_interpreted_kernels_agree_with_float64(check: str) -> None:
    pytest.importorskip("triton")
    module = "tests.calibrators.solvers.interpreted_kernels"
    run_python("-m", module, check, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True)


def test_there_are_no_kernels_where_none_can_run() -> None:
    assert fused.kernels_for(torch.zeros(2, 3)) is None
    assert fused.load_kernels.__wrapped__(torch.device("cpu")) is None


def test_solvers_use_kernels_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    confidence, odds = torch.tensor([0.25, 0.5]).double(), torch.ones(2, 3).double()
    kernels = SimpleNamespace(
        top_probability=lambda *_: confidence,
        log_odds=lambda *_: odds,
        search_inverse_temperature=lambda *_: 0.75,
        solve_inverse_temperatures=lambda *_: confidence,
    )
    for module in (confidence_inverse, temperature, log_odds):
        monkeypatch.setattr(module, "kernels_for", lambda _: kernels)
    logits, classes = torch.tensor([[1.0, 0, 2], [3, 1, 0]]), torch.tensor([2, 0])
    one = torch.ones(2, dtype=torch.float64)
    assert temperature.top_probability(logits, one) is confidence
    assert log_odds.compute_log_odds(logits, classes, 1.0) is odds
    assert temperature.nll_inverse_temperature(logits, classes) == 0.75
    assert confidence_inverse.inverse_temperature_for(logits, one / 2) is confidence
