"""Every command, run as a user would."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import rightly
from rightly.cli import main
from tests.conftest import make


@pytest.fixture
def files(tmp_path):
    for name, seed in (("cal", 0), ("ind", 1), ("blur", 2)):
        predictions, labels = make(n=200, seed=seed)
        rightly.save(tmp_path / f"{name}.npz", predictions, labels)
    return tmp_path


def test_compare_prints_a_table_and_writes_json(files, capsys):
    status = main(
        [
            "compare",
            str(files / "cal.npz"),
            "--on",
            f"ind={files / 'ind.npz'}",
            "--on",
            str(files / "blur.npz"),
            "--methods",
            "uncalibrated,temperature_scaling,ca_views",
            "--json",
            str(files / "table.json"),
            "--seeds",
            "2",
        ]
    )
    assert status == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("ind", "blur", "ca_views", "brier"))
    rows = json.loads((files / "table.json").read_text())["rows"]
    assert len(rows) == 3 * 2 * 4 * 2
    assert {"calibrator", "dataset", "metric", "value", "seed"} <= set(rows[0])
    assert {"low", "high", "p", "p_holm", "floor", "floor_high"} <= set(rows[0])
    for row in rows:
        assert row["low"] <= row["high"]
        assert (row["p"] is None) == (row["calibrator"] == "temperature_scaling")
    assert "no detectable difference" in printed and "noise floor" in printed


def test_a_comparison_without_intervals_is_the_plain_table(files, capsys):
    table = files / "table.json"
    arguments = ["compare", str(files / "cal.npz"), "--on", str(files / "ind.npz")]
    arguments += ["--methods", "uncalibrated,spline", "--json", str(table), "--no-intervals"]
    assert main(arguments) == 0
    assert "detectable" not in capsys.readouterr().out
    assert {row["low"] for row in json.loads(table.read_text())["rows"]} == {None}


def test_rank_reads_what_compare_wrote(files, capsys):
    arguments = ["compare", str(files / "cal.npz"), "--on", f"t={files / 'ind.npz'}"]
    tables = [str(files / "a.json"), str(files / "b.json")]
    main([*arguments, "--methods", "uncalibrated,spline", "--json", tables[0]])
    main([*arguments, "--methods", "uncalibrated,spline,ca_only", "--json", tables[1]])
    capsys.readouterr()
    assert main(["rank", *tables]) == 0
    captured = capsys.readouterr()
    lines = [line.split() for line in captured.out.splitlines() if line]
    assert {lines[1][0], lines[2][0]} == {"uncalibrated", "spline"}
    assert float(lines[1][1]) + float(lines[2][1]) == pytest.approx(3)
    assert "left out" in captured.err and "ca_only" in captured.err


def test_fit_evaluate_and_apply_belong_together(files, capsys):
    saved, scores = str(files / "cal.safetensors"), files / "scores.csv"
    assert main(["fit", str(files / "cal.npz"), "--method", "ca_views", "--out", saved]) == 0
    assert main(["evaluate", saved, str(files / "ind.npz")]) == 0
    printed = capsys.readouterr().out
    assert "change" in printed and "no detectable difference" in printed
    assert "before" in printed and all(name in printed for name in rightly.metrics.METRICS)
    assert main(["apply", saved, str(files / "ind.npz"), "--out", str(scores)]) == 0
    with scores.open() as file:
        rows = list(csv.DictReader(file))
    predictions, _ = rightly.load(files / "ind.npz")
    fitted = rightly.load_calibrator(saved)
    assert list(rows[0]) == [
        "index",
        "predicted_class",
        "confidence",
        "raw_confidence",
        "temperature",
    ]
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    np.testing.assert_array_equal(columns["index"], np.arange(200))
    np.testing.assert_array_equal(columns["predicted_class"], predictions.classes)
    np.testing.assert_allclose(columns["confidence"], fitted.confidence(predictions))
    np.testing.assert_allclose(columns["raw_confidence"], predictions.confidence)
    np.testing.assert_allclose(columns["temperature"], fitted.temperature(predictions))


def test_class_names_are_written_where_they_are_known(files):
    predictions, labels = make(n=50)
    named = rightly.Predictions(predictions.logits, class_names=[f"kind {i}" for i in range(10)])
    rightly.save(files / "named.npz", named, labels)
    saved, scores = str(files / "a.safetensors"), files / "a.csv"
    main(["fit", str(files / "named.npz"), "--method", "spline", "--out", saved])
    main(["apply", saved, str(files / "named.npz"), "--out", str(scores)])
    with scores.open() as file:
        assert next(csv.DictReader(file))["class_name"] == f"kind {int(named.classes[0])}"


def test_methods_lists_every_one(capsys):
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in rightly.CALIBRATORS)
    assert "never" in printed


def test_methods_without_their_inputs_are_left_out_with_a_word(files, capsys):
    predictions, labels = make(n=80)
    rightly.save(files / "bare.npz", rightly.Predictions(predictions.logits), labels)
    bare = str(files / "bare.npz")
    arguments = ["compare", bare, "--on", bare, "--metrics", "brier"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "left out, for want of view_logits" in captured.err.replace("\n", " ")
    assert "ca_views" not in captured.out


def test_views_can_be_chosen(files):
    saved = str(files / "two.safetensors")
    views = ["--views", "view2,view0"]
    assert main(["fit", str(files / "cal.npz"), *views, "--out", saved]) == 0
    assert rightly.load_calibrator(saved).view_names == ("view2", "view0")
    # A calibrator takes the views it knows from files that have more.
    assert main(["evaluate", saved, str(files / "ind.npz")]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "nowhere.npz", "--out", "a"], "there is no predictions file nowhere.npz"),
        (["fit", "{cal}", "--method", "platt", "--out", "a"], "method must be one of"),
        (["fit", "{cal}", "--method", "spline", "--out", "no/folder/a"], "does not exist"),
        (["fit", "{cal}", "--views", "sideways", "--out", "a"], "views must be some of"),
        (["compare", "{cal}", "--on", "{cal}", "--metrics", "luck"], "metric must be one of"),
        (["compare", "{cal}", "--on", "{cal}", "--on", "{cal}"], "different name"),
        (["compare", "{cal}", "--on", "{cal}", "--reference", "luck"], "reference must be one of"),
        (["compare", "{cal}", "--on", "{cal}", "--resamples", "20"], "resamples must be at least"),
        (["rank", "{cal}"], "must be JSON that rightly compare --json wrote"),
        (["compare", "{bare}", "--on", "{bare}", "--methods", "ca_views"], "needs predictions"),
        (["compare", "{unlabelled}", "--on", "{cal}"], "must hold labels"),
        (["evaluate", "{cal}", "{cal}"], "safetensors"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_two(files, capsys, arguments, words):
    predictions, labels = make(n=50)
    rightly.save(files / "bare.npz", rightly.Predictions(predictions.logits), labels)
    rightly.save(files / "unlabelled.npz", predictions)
    names = {name: str(files / f"{name}.npz") for name in ("cal", "bare", "unlabelled")}
    assert main([argument.format(**names) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err.replace("\n", " ")
    assert "Traceback" not in captured.err


def test_the_command_is_installed():
    shown = subprocess.run(
        [sys.executable, "-m", "rightly", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == f"rightly {rightly.__version__}"


def test_the_demo_fits_everything_and_prints_the_papers_table(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.strip()}
    for name in rightly.CALIBRATORS:
        assert len(lines[name]) == 12
        assert all(np.isfinite(float(value)) for value in lines[name])
    page = (tmp_path / "rightly-demo-report.html").read_text()
    assert str(tmp_path / "rightly-demo-report.html") in printed
    assert len(page) < 3_000_000
    for title in ("in distribution", "blur", "noise"):
        assert title in printed and title in page
