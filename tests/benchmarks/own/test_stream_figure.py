"""The figure of a stream: full windows in order, sets that come twice divided."""

import sys

import pytest
from benchmarks.own import stream_figure

import rightly
from tests.conftest import make


def test_a_set_that_comes_twice_is_divided_into_full_windows():
    fitted = rightly.calibrator("temperature_scaling").fit(*make()).learn_shift(*make())
    sets = {"a": make(n=90, seed=1), "b": make(n=50, seed=2)}
    windows = stream_figure.measure_stream(fitted, sets, ["a", "b", "a"], 20)
    assert [window.shift for window in windows] == list("aabbaa")
    predictions, labels = sets["a"]
    second = slice(45, 65)
    right = (predictions.classes == labels)[second].double().mean()
    assert windows[4].accuracy == pytest.approx(float(right))
    adapted = fitted.adapt(predictions[second]).confidence(predictions[second])
    assert windows[4].after == pytest.approx(float(adapted.mean()))


def test_the_figure_of_given_predictions_is_written(tmp_path, monkeypatch, capsys):
    for name, seed in (("cal", 0), ("fog", 1)):
        rightly.save(tmp_path / f"{name}.npz", *make(seed=seed))
    out = tmp_path / "stream.svg"
    arguments = ["--predictions", str(tmp_path), "--stream", "fog", "--method", "ts"]
    monkeypatch.setattr(sys, "argv", ["stream_figure", str(out), *arguments, "--window", "100"])
    stream_figure.main()
    assert "fog" in out.read_text() and "fog: mean |confidence" in capsys.readouterr().out
