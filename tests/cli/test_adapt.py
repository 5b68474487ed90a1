"""`rightly adapt`, run as a user would."""

import re

import pytest

import rightly
from rightly.cli import main
from rightly.demo_data import load_demo_set


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapt")
    fitted = rightly.fit(*load_demo_set("cal"), "temperature_scaling")
    fitted.save(folder / "cal.safetensors")
    rightly.save(folder / "haze.npz", load_demo_set("haze")[0])  # without labels
    return folder


def test_it_writes_the_adapted_calibrator_and_says_what_changed(folder, tmp_path, capsys):
    out = tmp_path / "adapted.safetensors"
    arguments = ["adapt", str(folder / "cal.safetensors"), str(folder / "haze.npz")]
    assert main([*arguments, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    predictions, labels = load_demo_set("haze")
    adapted, before = rightly.load_calibrator(out), rightly.load_calibrator(arguments[1])
    means = [float(one.confidence(predictions).mean()) for one in (before, adapted)]
    assert f"mean confidence: {means[0]:.4f} before, {means[1]:.4f} after" in printed
    shift = adapted.record["adapted"]["shift_estimate"]
    assert f"shift estimate of 2500 samples: {shift:+.3f}" in printed and shift < 0
    value, low, high = map(
        float,
        re.search(r"expected accuracy: ([\d.]+), range ([\d.]+) to ([\d.]+)", printed).groups(),
    )
    accuracy = float((predictions.classes == labels).double().mean())
    assert low < accuracy < high and abs(value - accuracy) < abs(means[0] - accuracy)


def test_what_cannot_be_adapted_is_refused(folder, tmp_path, capsys):
    fitted = rightly.calibrator("temperature_scaling")
    predictions, labels = load_demo_set("cal")
    fitted.fit(rightly.Predictions(predictions.logits), labels).save(tmp_path / "no.safetensors")
    out = tmp_path / "out.safetensors"
    arguments = ["adapt", str(tmp_path / "no.safetensors"), str(folder / "haze.npz")]
    assert main([*arguments, "--out", str(out)]) == 2
    assert (
        "call learn_shift(predictions, labels) with the calibration data first"
        in capsys.readouterr().err
        and not out.exists()
    )


def test_an_input_is_not_overwritten(folder, capsys):
    saved = str(folder / "cal.safetensors")
    assert main(["adapt", saved, str(folder / "haze.npz"), "--out", saved]) == 2
    assert "it is read as input" in capsys.readouterr().err


def test_the_name_of_a_calibrators_file_is_asked_for(folder, tmp_path, capsys):
    arguments = ["adapt", str(folder / "cal.safetensors"), str(folder / "blur.npz")]
    assert main([*arguments, "--out", str(tmp_path / "adapted.pt")]) == 2
    assert "out must be a calibrator's file" in capsys.readouterr().err
