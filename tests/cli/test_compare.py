"""`rightly compare`, run as a user would."""

import json

import pytest
import torch

import rightly
from rightly import Predictions
from rightly.cli import main
from rightly.evaluation.measurement import TABLE_METRICS
from rightly.metrics import METRICS
from tests.conftest import make


def test_it_prints_a_table_and_writes_json(files, tmp_path, capsys):
    arguments = ["compare", str(files / "cal.npz"), f"ind={files / 'ind.npz'}"]
    arguments += [str(files / "blur.npz"), "--repeats", "2"]
    arguments += ["--methods", "uncalibrated,temperature_scaling,ca_views"]
    assert main([*arguments, "--json", str(tmp_path / "table.json")]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("ind", "blur", "ca_views", "brier"))
    document = json.loads((tmp_path / "table.json").read_text())
    assert (document["format"], document["version"]) == ("rightly-results", 2)
    rows = document["rows"]
    assert len(rows) == 3 * 2 * 4 * 2
    assert {"calibrator", "dataset", "metric", "value", "seed"} <= set(rows[0])
    assert {"low", "high", "p", "p_holm", "floor", "floor_high"} <= set(rows[0])
    for row in rows:
        assert row["low"] <= row["high"]
        assert (row["p"] is None) == (row["calibrator"] == "temperature_scaling")
    assert "no detectable difference" in printed and "noise floor" in printed


def test_without_intervals_it_is_the_plain_table(files, tmp_path, capsys):
    table = tmp_path / "table.json"
    arguments = ["compare", str(files / "cal.npz"), str(files / "ind.npz")]
    arguments += ["--methods", "uncalibrated,spline", "--no-intervals"]
    assert main([*arguments, "--json", str(table), "--metrics", "all"]) == 0
    assert "detectable" not in capsys.readouterr().out
    rows = json.loads(table.read_text())["rows"]
    assert {row["low"] for row in rows} == {None}
    assert {row["metric"] for row in rows} == set(METRICS)
    assert main([*arguments, "--reference", "spline"]) == 2
    assert "reference must come with" in capsys.readouterr().err


def test_seed_and_number_of_resamples_are_the_users(files, tmp_path):
    arguments = ["compare", str(files / "cal.npz"), str(files / "ind.npz")]
    arguments += ["--methods", "uncalibrated,spline", "--metrics", "brier"]
    lows = []
    for seed in ("0", "0", "1"):
        table = tmp_path / "t.json"
        options = ["--resamples", "300", "--seed", seed, "--json", str(table)]
        assert main([*arguments, *options]) == 0
        document = json.loads(table.read_text())
        expected = {"resamples": 300, "seed": int(seed), "reference": "uncalibrated"}
        assert document | expected == document
        lows.append(document["rows"][0]["low"])
    assert lows[0] == lows[1] != lows[2]


def test_a_method_that_ends_in_one_temperature_is_named_below_the_table(tmp_path, capsys):
    predictions, labels = make(n=600, noise=0.0)
    noise = torch.randn(600, 3, 10, generator=torch.Generator().manual_seed(3))
    rightly.save(tmp_path / "cal.npz", Predictions(predictions.logits, noise), labels)
    arguments = ["compare", str(tmp_path / "cal.npz"), str(tmp_path / "cal.npz")]
    arguments += ["--methods", "ts,ca_views_released", "--repeats", "6", "--allow-overlap"]
    for options in ([], ["--no-intervals"]):
        assert main([*arguments, *options]) == 0
        printed = capsys.readouterr().out
        assert "One temperature for all samples: ca_views_released (" in printed


@pytest.mark.parametrize("methods", [[], ["--methods", "all"]])
def test_methods_without_their_inputs_are_skipped_with_a_word(files, capsys, methods):
    bare = str(files / "bare.npz")
    arguments = ["compare", bare, bare, "--allow-overlap", "--metrics", "brier", "--no-intervals"]
    assert main([*arguments, *methods]) == 0
    captured = capsys.readouterr()
    skipped = captured.err.partition("skipped: needs view_logits (")[2].partition(")")[0]
    assert "ca_views" in skipped.split(", ")
    assert "ca_views" not in captured.out and "spline" in captured.out
    assert ("balanced_temperature" in captured.out) == bool(methods)


def test_names_with_brackets_are_printed_as_they_are(files, capsys):
    arguments = ["compare", str(files / "cal.npz"), "--methods", "uncalibrated,spline"]
    for more in ([], ["--no-intervals"]):
        name = "[red]x[/]"
        assert main([*arguments, f"{name}={files / 'ind.npz'}", *more]) == 0
        assert name in capsys.readouterr().out


def test_help_names_the_metrics_of_the_table(capsys):
    assert main(["compare", "--help"]) == 0
    assert ",".join(TABLE_METRICS) in capsys.readouterr().out


def test_views_can_be_chosen(files, capsys):
    cal = str(files / "cal.npz")
    arguments = ["compare", cal, cal, "--allow-overlap", "--methods", "uncalibrated"]
    arguments.append("--no-intervals")
    assert main([*arguments, "--views", "view1"]) == 0
    assert main([*arguments, "--views", "sideways"]) == 2
    assert "views must be some of" in capsys.readouterr().err
    assert rightly.load(cal)[0].view_names == ("view0", "view1", "view2")
