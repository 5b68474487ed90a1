"""`rightly evaluate`, run as a user would."""

import json

import pytest

import rightly
from rightly.cli import main


@pytest.fixture
def saved(files, tmp_path):
    predictions, labels = rightly.load(files / "cal.npz")
    rightly.calibrator("ca_views").fit(predictions, labels).save(tmp_path / "c.safetensors")
    return str(tmp_path / "c.safetensors")


def test_every_metric_is_printed_before_and_after(files, saved, tmp_path, capsys):
    table = tmp_path / "t.json"
    arguments = ["--resamples", "200", "--bootstrap-seed", "4", "--json", str(table)]
    assert main(["evaluate", saved, str(files / "ind.npz"), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "change" in printed and "no detectable difference" in printed
    assert "before" in printed and all(name in printed for name in rightly.metrics.METRICS)
    document = json.loads(table.read_text())
    assert (document["format"], document["version"]) == ("rightly-results", 1)
    assert document["bootstrap"]["seed"] == 4 and document["bootstrap"]["resamples"] == 200
    values = {(row["calibrator"], row["metric"]): row["value"] for row in document["rows"]}
    predictions, labels = rightly.load(files / "ind.npz")
    correct = predictions.correct(labels)
    brier = rightly.metrics.brier(predictions.confidence.numpy(), correct.numpy())
    assert values["uncalibrated", "brier"] == pytest.approx(brier)


def test_without_intervals_there_are_values_alone(files, saved, capsys):
    assert main(["evaluate", saved, str(files / "ind.npz"), "--no-intervals"]) == 0
    printed = capsys.readouterr().out
    assert "after" in printed and "interval" not in printed
