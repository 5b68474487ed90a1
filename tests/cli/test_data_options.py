"""Arrays, tensors, tables and probabilities as input of every command that reads data sets."""

import inspect
import json

import numpy as np
import pytest
import torch

import rightly
from rightly.cli import COMMANDS, main

READING = [
    name
    for name, module in COMMANDS.items()
    if "probabilities" in inspect.signature(module.run).parameters
]


@pytest.fixture(scope="module")
def arrays(files, tmp_path_factory):
    """What stands in cal.npz and ind.npz, as other people have it."""
    folder = tmp_path_factory.mktemp("arrays")
    for name in ("cal", "ind"):
        predictions, labels = rightly.load(files / f"{name}.npz")
        np.save(folder / f"{name}.npy", predictions.logits.numpy())
        torch.save(predictions.logits.double().softmax(-1), folder / f"{name}.pt")
        np.savetxt(folder / f"{name}.txt", labels.numpy(), "%d")
    return folder


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_data_sets_has_the_options(command, capsys):
    assert main([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "--probabilities" in printed
    assert ("--labels" in printed) == (command != "predict")  # which needs none


def test_most_commands_read_data_sets():
    commands = {
        "adapt",
        "benchmark",
        "compare",
        "doctor",
        "evaluate",
        "fit",
        "predict",
        "report",
        "views",
    }
    assert set(READING) == commands


def read_values(path):
    rows = json.loads(path.read_text())["rows"]
    return {(row["calibrator"], row["metric"]): row["value"] for row in rows}


def compare(folder, out, *arguments):
    options = ["--methods", "uncalibrated,ts", "--no-intervals", "--json", str(out), *arguments]
    assert main(["compare", *map(str, folder), *options]) == 0
    return read_values(out)


def test_logits_and_probabilities_of_files_give_what_the_archive_gives(arrays, files, tmp_path):
    expected = compare([files / "cal.npz", files / "ind.npz"], tmp_path / "a.json")
    for suffix, more in (("npy", []), ("pt", ["--probabilities"])):
        cal, ind = (arrays / f"{name}.{suffix}" for name in ("cal", "ind"))
        labels = [
            *("--labels", f"{cal}={arrays / 'cal.txt'}"),
            *("--labels", f"{ind}={arrays / 'ind.txt'}"),
        ]
        values = compare([cal, f"ind={ind}"], tmp_path / "b.json", *labels, *more)
        assert values == pytest.approx(expected, abs=1e-5)


def test_fit_apply_and_evaluate_take_an_array_and_its_labels(arrays, tmp_path, capsys):
    out, labels = str(tmp_path / "c.safetensors"), str(arrays / "cal.txt")
    cal, ind = str(arrays / "cal.npy"), str(arrays / "ind.npy")
    assert main(["fit", cal, "--labels", labels, "--method", "ts", "--out", out]) == 0
    assert main(["predict", out, ind, "--out", str(tmp_path / "a.csv")]) == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 201
    assert main(["evaluate", out, ind, "--resamples", "50"]) == 2
    assert "must hold labels" in capsys.readouterr().err
    arguments = ["--labels", str(arrays / "ind.txt"), "--resamples", "50"]
    assert main(["evaluate", out, ind, *arguments]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cal.pt", "--labels", "cal.txt"], "probabilities=True if these are probabilities"),
        (["cal.npy"], "must hold labels"),
        (["cal.npy", "--labels", "none.txt"], "there is no file of labels"),
        (["cal.npy", "--labels", "cal.npy"], "labels must be integers"),
        (["cal.npz", "--probabilities"], "probabilities=True contradicts"),
        (["cal.npz", "--labels", "cal.npz=cal.txt"], "has its own"),
    ],
)
def test_what_is_missing_or_contradicts_is_named_by_its_option(
    arguments, message, arrays, files, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(arrays)
    (arrays / "cal.npz").write_bytes((files / "cal.npz").read_bytes())
    assert main(["fit", *arguments, "--out", str(tmp_path / "c.safetensors")]) == 2
    assert message in capsys.readouterr().err


def test_one_file_of_labels_is_not_for_two_data_sets(arrays, capsys):
    cal, ind = str(arrays / "cal.npy"), str(arrays / "ind.npy")
    assert main(["compare", cal, ind, "--labels", str(arrays / "cal.txt")]) == 2
    error = capsys.readouterr().err
    assert "labels must say whose they are where there are several data sets" in error
    assert "write DATA=" in error


def test_labels_of_another_data_set_are_refused(arrays, capsys):
    cal = str(arrays / "cal.npy")
    assert main(["views", cal, "--labels", f"{arrays / 'call.npy'}={arrays / 'cal.txt'}"]) == 2
    assert f"is not known: did you mean {cal}?" in capsys.readouterr().err
