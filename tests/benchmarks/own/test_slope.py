"""The slope along the temperature-scaled log-odds."""

import sys

import pytest
import torch
from benchmarks.own import slope

import rightly
from tests.calibrators.correctness_logistic.data import augmented, draw_noisy


def test_it_prints_slopes_and_every_test_set_with_and_without_views(tmp_path, monkeypatch, capsys):
    rightly.save(tmp_path / "cal.npz", *draw_noisy(800))
    rightly.save(tmp_path / "test.npz", *augmented())
    arguments = [str(tmp_path / name) for name in ("cal.npz", "test.npz")]
    monkeypatch.setattr(sys, "argv", ["slope", *arguments])
    slope.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines if "800" in line] == ["no views", "3 views"]
    for name in ("test", "gaussian_noise:3", "gaussian_blur:3"):
        of_set = [line for line in lines if line.startswith(f"{name} ")]
        assert len(of_set) == 6 and sum("slope >= 1" in line for line in of_set) == 2


def test_a_line_is_found_and_the_level_kept():
    x = torch.linspace(-3, 3, 50).double()
    assert slope.find_slope(x, 0.8 * x + 1) == pytest.approx(0.8)
    bias = slope.find_bias(1.25 * x, float((0.8 * x + 1).sigmoid().mean()))
    assert float((1.25 * x + bias).sigmoid().mean()) == pytest.approx(
        float((0.8 * x + 1).sigmoid().mean())
    )
