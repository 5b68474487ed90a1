"""`rightly export`, run as a user would."""

import pytest

import rightly
from rightly.cli import main
from rightly.deployment import open_exported
from tests.cli.conftest import MODEL


def test_the_file_names_its_classifier(place):
    metadata = open_exported(place / "model.onnx").metadata
    assert metadata["classifier"]["name"].endswith(":small")
    assert metadata["parity"]["kind"] == "synthetic" and metadata["parity"]["confidence"] < 1e-5


def test_names_are_given_and_file_and_torch_compared_on_the_pictures_asked_for(
    place, tmp_path, capsys
):
    nameless = rightly.load_calibrator(place / "cal.safetensors")
    nameless.class_names = None
    nameless.save(tmp_path / "cal.safetensors")
    (tmp_path / "names.txt").write_text("".join(f"class {i}\n" for i in range(4)))
    out = tmp_path / "m.onnx"
    arguments = ["export", MODEL, str(tmp_path / "cal.safetensors")]
    arguments += ["--images", str(place / "photos"), "--out", str(out)]
    names = ["--class-names", str(tmp_path / "names.txt")]
    assert main([*arguments, *names, "--samples", "2"]) == 0
    assert "on 2 real images" in capsys.readouterr().out
    exported = open_exported(out)
    assert exported.metadata["parity"]["images"] == 2 and exported.class_names[0] == "class 0"
    assert main([*arguments, "--samples", "0"]) == 2
    assert "samples must be at least 1" in capsys.readouterr().err
    assert main([*arguments, "--class-names", "imagenet"]) == 2
    assert "must have 4 classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["onnx:{place}/none.onnx", "--out", "{place}/x.onnx"], "there is no model file"),
        ([MODEL, "--out", "{place}/x.bin"], "must end in .onnx or .pt2"),
        ([MODEL, "--out", "{place}/cal.safetensors"], "it is read as input"),
        ([MODEL, "--std", "1,2", "--out", "x.onnx"], "std must be three numbers"),
    ],
)
def test_bad_arguments_end_in_one_line(place, capsys, arguments, message):
    model, *options = (text.format(place=place) for text in arguments)
    assert main(["export", model, str(place / "cal.safetensors"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
