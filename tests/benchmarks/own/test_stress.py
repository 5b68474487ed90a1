"""What measures Rightly's own calibrator where there is little to learn from."""

import sys

import numpy as np
import pytest
import torch
from benchmarks.own import stress

import rightly
from rightly import Predictions
from tests.conftest import make


@pytest.fixture
def stored(tmp_path):
    """Two files of one classifier with nine views, where stress looks for them."""
    (tmp_path / "one").mkdir()
    for seed, name in enumerate(("cal", "ind")):
        predictions, labels = make(n=700, m=9, seed=seed)
        names = ("rot90", *(f"view{i}" for i in range(8)))
        named = Predictions(predictions.logits, predictions.view_logits, view_names=names)
        rightly.save(tmp_path / "one" / f"{name}.npz", named, labels)
    return tmp_path


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["stress", *map(str, arguments)])
    stress.main()
    return capsys.readouterr().out


def test_it_prints_a_line_a_condition_and_measures_nothing_twice(stored, monkeypatch, capsys):
    titles = "nine views, n = 30; views of other images, n = 60; missing classes, n = 500"
    arguments = [stored, "--conditions", titles, "--draws", 2, "--out", stored / "stress.csv"]
    printed = run(monkeypatch, capsys, *arguments)
    for title in titles.split("; "):
        assert printed.count(f"{title} ") == 1 and f"one: {title}: " in printed
    monkeypatch.setattr(stress, "measure_draw", None)
    assert run(monkeypatch, capsys, *arguments) == printed


@pytest.mark.parametrize("condition", stress.list_conditions().values(), ids=lambda c: c.title)
def test_every_condition_gives_views_for_every_sample(stored, condition):
    data = rightly.load(stored / "one" / "cal.npz")
    data = data[0], torch.as_tensor(data[1])
    rows = condition.cal_rows(data, np.random.default_rng(0))
    predictions, labels = stress.apply_condition(condition, data, rows, 0)
    assert len(predictions) == len(labels) == len(rows) > 0
    accuracy = float(predictions.correct(labels).double().mean())
    if "accuracy" in condition.name:
        share = float(condition.name.split(" %")[0]) / 100
        assert accuracy == pytest.approx(share, abs=0.01)
    if condition.name.startswith("missing"):
        assert len(labels.unique()) == 5
    expected = {"fifty views": 50, "noise views": 3, "one weak view": 1, "duplicated views": 27}
    if condition.name in expected:
        assert predictions.view_logits.shape[1] == expected[condition.name]
