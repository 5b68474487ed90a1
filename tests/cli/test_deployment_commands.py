"""The commands of the last mile, run as a user would."""

import json

import pytest
import torch
from PIL import Image

import rightly
from rightly.cli import main
from rightly.deployment import open_exported
from tests.conftest import make
from tests.deployment.tiny_models import PREPROCESSING, Small, fitted, pictures
from tests.deployment.tiny_models import predictions as small_predictions


def small() -> tuple[torch.nn.Module, rightly.classifiers.Preprocessing]:
    """What --model py:tests.cli.test_deployment_commands:small opens."""
    return Small(), PREPROCESSING


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a fitted calibrator, an exported model and some pictures."""
    folder = tmp_path_factory.mktemp("place")
    calibrator = fitted(threshold=0.7)
    calibrator.save(folder / "cal.safetensors")
    (folder / "photos" / "inner").mkdir(parents=True)
    for i, pixels in enumerate(pictures(3, size=20)):
        Image.fromarray(pixels).save(folder / "photos" / "inner" / f"{i}.png")
    arguments = ["--calibrator", str(folder / "cal.safetensors")]
    spec = f"py:{__name__}:small"
    status = main(["export", "--model", spec, *arguments, "--out", str(folder / "model.onnx")])
    assert status == 0
    return folder


def test_export_writes_a_file_that_names_its_classifier(place):
    metadata = open_exported(place / "model.onnx").metadata
    assert metadata["classifier"]["name"].endswith(":small")
    assert metadata["parity"]["kind"] == "synthetic" and metadata["parity"]["confidence"] < 1e-5


def test_predict_prints_json_for_files_and_folders(place, capsys):
    one = place / "photos" / "inner" / "0.png"
    assert (
        main(["predict", str(place / "model.onnx"), str(one), str(place / "photos"), "--json"]) == 0
    )
    rows = json.loads(capsys.readouterr().out)
    assert [row["file"].split("/")[-1] for row in rows] == ["0.png", "0.png", "1.png", "2.png"]
    model = rightly.CalibratedClassifier(Small(), fitted(threshold=0.7))
    said = model.predict([Image.open(one)])
    assert rows[0]["class"] == int(said.classes[0])
    assert rows[0]["name"] in ("red", "green", "blue", "dark")
    assert rows[0]["confidence"] == pytest.approx(float(said.confidence[0]), abs=1e-5)
    assert rows[0]["accept"] is bool(said.accept[0])


def test_predict_prints_a_table_and_names_what_it_cannot_read(place, capsys, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    good = place / "photos" / "inner" / "1.png"
    assert main(["predict", str(place / "model.onnx"), str(good), str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "1.png" in captured.out.replace("\n", "") and "accept (from 0.700)" in captured.out
    assert "1 of 2 pictures: broken.jpg cannot be decoded" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "{place}/model.onnx", "{place}/nothing.jpg"], "there is no picture"),
        (["predict", "{place}/cal.safetensors", "{place}/photos"], "must end in .onnx or .pt2"),
        (["export", "--graft", "{place}/none.onnx", "--calibrator", "{place}/cal.safetensors",
          "--out", "{place}/x.onnx"], "there is no model file"),
        (["export", "--model", f"py:{__name__}:small", "--calibrator", "{place}/cal.safetensors",
          "--out", "{place}/x.bin"], "must end in .onnx or .pt2"),
        (["card", "{place}/model.onnx", "--on", "{place}/x.npz"], "--on needs --calibrator"),
        (["card", "{place}/photos"], "must hold a config.json"),
    ],
)  # fmt: skip
def test_bad_arguments_end_in_one_line(place, capsys, arguments, message):
    assert main([text.format(place=place) for text in arguments]) == 2
    told = capsys.readouterr().err
    assert message in told and "Traceback" not in told


def test_fit_stores_the_threshold_that_reaches_an_accuracy(tmp_path, capsys):
    predictions, labels = make(n=400)
    rightly.save(tmp_path / "cal.npz", predictions, labels)
    out = str(tmp_path / "c.safetensors")
    arguments = ["--method", "temperature_scaling", "--accuracy", "0.85", "--out", out]
    assert main(["fit", str(tmp_path / "cal.npz"), *arguments]) == 0
    assert "accepts confidence from" in capsys.readouterr().out
    loaded = rightly.load_calibrator(out)
    accepted = loaded.accept(predictions)
    assert predictions.correct(labels)[accepted].double().mean() >= 0.85
    assert main(["fit", str(tmp_path / "cal.npz"), *arguments[:2], "--out", out]) == 0
    assert rightly.load_calibrator(out).threshold is None


def test_fit_takes_a_budget(tmp_path, capsys):
    predictions, labels = make(n=400)
    rightly.save(tmp_path / "cal.npz", predictions, labels)
    out = str(tmp_path / "c.safetensors")
    budget = ["--method", "ca_views", "--budget", "1.5", "--out", out]
    assert main(["fit", str(tmp_path / "cal.npz"), *budget]) == 0
    assert rightly.load_calibrator(out).record["passes"] <= 1.6


def test_budget_prints_and_writes_the_curve(tmp_path, capsys):
    predictions, labels = make(n=400)
    rightly.save(tmp_path / "cal.npz", predictions, labels)
    out = tmp_path / "curve.json"
    method = ["--method", "ca_views", "--json", str(out)]
    assert main(["budget", str(tmp_path / "cal.npz"), *method]) == 0
    points = json.loads(out.read_text())
    assert points[0]["passes"] == 1 and points[-1]["passes"] == 4
    assert "everywhere" in capsys.readouterr().out


def test_a_card_holds_what_was_measured_and_the_hub_reads_it(place, tmp_path, capsys):
    found, labels = small_predictions()
    rightly.save(tmp_path / "test.npz", found, labels)
    out = tmp_path / "README.md"
    calibrator = ["--calibrator", str(place / "cal.safetensors")]
    on = ["--on", f"mine={tmp_path / 'test.npz'}"]
    assert main(["card", str(place / "model.onnx"), *calibrator, *on, "--out", str(out)]) == 0
    text = out.read_text()
    assert "Accept where confidence ≥ 0.7000" in text and "| mine | 400 |" in text
    assert "4.00 forward passes" in text

    from huggingface_hub import ModelCard

    results = ModelCard.load(out).data.eval_results
    values = {result.metric_type: result.metric_value for result in results}
    fitted_again = rightly.load_calibrator(place / "cal.safetensors")
    ece = rightly.metrics.ece(fitted_again.confidence(found), found.correct(labels))
    assert values["ece"] == pytest.approx(ece)
    assert results[0].dataset_name == "mine"


def test_a_card_of_a_calibrator_alone_is_printed(place, capsys):
    assert main(["card", str(place / "cal.safetensors"), "--block"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("## Confidence calibration") and "ca_views" in told


def test_a_card_measures_each_shift_by_itself(place, tmp_path, capsys):
    found, labels = small_predictions()
    shift = torch.arange(400) % 2
    both = rightly.Predictions(
        found.logits,
        found.view_logits,
        view_names=found.view_names,
        shift=shift,
        shift_names=["blur:3"],
    )
    rightly.save(tmp_path / "test.npz", both, labels)
    arguments = [str(place / "cal.safetensors"), "--on", str(tmp_path / "test.npz"), "--block"]
    assert main(["card", *arguments]) == 0
    told = capsys.readouterr().out
    assert "| test | 200 |" in told and "| blur:3 | 200 |" in told


def test_export_compares_on_as_many_pictures_as_asked(place, tmp_path, capsys):
    out = tmp_path / "m.onnx"
    arguments = ["--model", f"py:{__name__}:small", "--calibrator", str(place / "cal.safetensors")]
    arguments += ["--images", str(place / "photos"), "--out", str(out)]
    assert main(["export", *arguments, "--samples", "2"]) == 0
    assert "on 2 real images" in capsys.readouterr().out
    assert open_exported(out).metadata["parity"]["images"] == 2
    assert main(["export", *arguments, "--samples", "0"]) == 2
    assert "--samples must be at least 1" in capsys.readouterr().err


def test_fit_says_when_a_threshold_accepts_nothing(tmp_path, capsys):
    predictions, labels = make(n=200)
    rightly.save(tmp_path / "cal.npz", predictions, labels)
    out = ["--threshold", "1.0", "--out", str(tmp_path / "c.safetensors")]
    assert main(["fit", str(tmp_path / "cal.npz"), "--method", "temperature_scaling", *out]) == 0
    assert "from 1.0000: none of the calibration samples" in capsys.readouterr().out
