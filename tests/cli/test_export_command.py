"""`rightly export`, run as a user would."""

import pytest

from rightly.cli import main
from rightly.deployment import open_exported
from tests.cli.conftest import MODEL


def test_the_file_names_its_classifier(place):
    metadata = open_exported(place / "model.onnx").metadata
    assert metadata["classifier"]["name"].endswith(":small")
    assert metadata["parity"]["kind"] == "synthetic" and metadata["parity"]["confidence"] < 1e-5


def test_file_and_torch_are_compared_on_as_many_pictures_as_asked(place, tmp_path, capsys):
    out = tmp_path / "m.onnx"
    arguments = ["--model", MODEL, "--calibrator", str(place / "cal.safetensors")]
    arguments += ["--images", str(place / "photos"), "--out", str(out)]
    assert main(["export", *arguments, "--samples", "2"]) == 0
    assert "on 2 real images" in capsys.readouterr().out
    assert open_exported(out).metadata["parity"]["images"] == 2
    assert main(["export", *arguments, "--samples", "0"]) == 2
    assert "--samples must be at least 1" in capsys.readouterr().err


CALIBRATOR = ["--calibrator", "{place}/cal.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--graft", "{place}/none.onnx", "--out", "{place}/x.onnx"], "there is no model file"),
        (["--model", MODEL, "--out", "{place}/x.bin"], "must end in .onnx or .pt2"),
        (["--out", "{place}/x.onnx"], "one of --model SPEC and --graft FILE must be given"),
        (["--model", MODEL, "--graft", "a", "--out", "x.onnx"], "one of --model SPEC and"),
        (["--model", MODEL, "--std", "1,2", "--out", "x.onnx"], "--std must be three numbers"),
    ],
)
def test_bad_arguments_end_in_one_line(place, capsys, arguments, message):
    assert main(["export", *(text.format(place=place) for text in arguments + CALIBRATOR)]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
