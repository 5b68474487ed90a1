"""`rightly adapt --use-labels`, run as a user would."""

import pytest

import rightly
from rightly.cli import main
from rightly.demo_data import load_demo_set


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recalibrate")
    fitted = rightly.fit(*load_demo_set("cal"), "temperature_scaling", threshold=0.9)
    fitted.save(folder / "cal.safetensors")
    predictions, labels = load_demo_set("pixelate")
    rightly.save(folder / "new.npz", predictions[:200], labels[:200])
    rightly.save(folder / "unlabelled.npz", predictions[:200])
    return folder


@pytest.mark.filterwarnings("always:.*drops its decision")
def test_it_writes_the_calibrator_and_says_what_changed(folder, tmp_path, capsys):
    out = tmp_path / "new.safetensors"
    arguments = ["adapt", str(folder / "cal.safetensors"), str(folder / "new.npz"), "--use-labels"]
    assert main([*arguments, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    after, (predictions, _) = rightly.load_calibrator(out), rightly.load(folder / "new.npz")
    record = after.record["adapted"]
    assert f"accuracy on 200 labelled samples: {record['accuracy']:.4f}" in printed.out
    assert f"{float(after.confidence(predictions).mean()):.4f} after" in printed.out
    assert "drops its decision" in printed.err and after.threshold is None


def test_labels_and_the_name_of_the_file_are_asked_for(folder, tmp_path, capsys):
    for new, out, words in (
        ("unlabelled.npz", "c.safetensors", "must hold labels"),
        ("new.npz", "c.pt", "out must be a calibrator's file"),
    ):
        arguments = ["adapt", str(folder / "cal.safetensors"), str(folder / new), "--use-labels"]
        assert main([*arguments, "--out", str(tmp_path / out)]) == 2
        assert words in capsys.readouterr().err
