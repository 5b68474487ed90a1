"""`rightly predict`, run as a user would."""

import json

import pytest
from PIL import Image

import rightly
from rightly.cli import main
from tests.deployment.tiny_models import Small
from tests.deployment.tiny_onnx import GUARANTEED, write_adaptable


def test_json_lines_are_one_object_an_image(place, tmp_path, capsys):
    one, table = place / "photos" / "inner" / "0.png", tmp_path / "t.json"
    arguments = [str(place / "model.onnx"), str(one), str(place / "photos"), "--jsonl", "-b", "3"]
    assert main(["predict", *arguments, "--json", str(table)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["file"].split("/")[-1] for row in rows] == ["0.png", "0.png", "1.png", "2.png"]
    calibrator = rightly.load_calibrator(place / "cal.safetensors")
    model = rightly.CalibratedClassifier(Small(), calibrator)
    outputs = model.predict([Image.open(one)])
    assert rows[0]["class"] == int(outputs.classes[0])
    assert rows[0]["name"] in ("red", "green", "blue", "dark")
    assert rows[0]["confidence"] == pytest.approx(float(outputs.confidence[0]), abs=1e-5)
    assert rows[0]["accept"] is bool(outputs.accept[0])
    assert rows[0]["shift_score"] == pytest.approx(float(outputs.shift_score[0]), abs=1e-4)
    same = outputs.view_classes[0] == outputs.classes[0]
    assert rows[0]["agreement"] == pytest.approx(float(same.double().mean()))
    document = json.loads(table.read_text())
    assert (document["format"], document["version"]) == ("rightly-predictions", 1)
    assert document["rows"] == rows


def test_a_context_stands_in_for_that_of_the_file(place, capsys):
    one = str(place / "photos" / "inner" / "0.png")
    rows = []
    for options in ([], ["--shift-estimate", "0"], ["--shift-estimate=-0.5"]):
        assert main(["predict", str(place / "model.onnx"), one, "--jsonl", *options]) == 0
        rows.append(json.loads(capsys.readouterr().out))
    assert rows[0] == rows[1] and rows[2]["confidence"] < rows[0]["confidence"]
    assert rows[2]["shift_score"] == rows[0]["shift_score"]


def test_a_void_guarantee_is_told(place, tmp_path, capsys):
    picture = str(place / "photos" / "inner" / "0.png")
    void = GUARANTEED.voided("adapted data")
    for decision, options, is_void in (
        (GUARANTEED, [], False),
        (GUARANTEED, ["--shift-estimate=-0.5"], True),
        (void, [], True),
    ):
        file = write_adaptable(tmp_path / "m.onnx", decision=decision.to_dict())
        assert main(["predict", str(file), picture, *options]) == 0
        assert ("guarantee void: adapted data" in capsys.readouterr().out) == is_void
        assert main(["predict", str(file), picture, "--jsonl", *options]) == 0
        row = json.loads(capsys.readouterr().out)
        assert row["void"] == ("adapted data" if is_void else None)


def test_a_table_names_what_cannot_be_read(place, capsys, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    good = tmp_path / "good [red]1 [b].png"
    good.write_bytes((place / "photos" / "inner" / "1.png").read_bytes())
    assert main(["predict", str(place / "model.onnx"), str(good), str(tmp_path), "-b", "1"]) == 2
    captured = capsys.readouterr()
    assert str(good) in captured.out and "accept (from 0.700)" in captured.out
    assert "1 of 3 images: broken.jpg cannot be decoded" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{place}/model.onnx", "{place}/nothing.jpg"], "there is no image"),
        (["{place}/model.onnx", "{empty}"], "holds no images"),
        (["{place}/model.onnx", "{place}/photos", "-b", "0"], "'--batch-size'"),
    ],
)
def test_bad_arguments_end_in_one_line(place, tmp_path, capsys, arguments, message):
    assert main(["predict", *(text.format(place=place, empty=tmp_path) for text in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
