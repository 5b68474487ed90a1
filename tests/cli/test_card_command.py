"""`rightly card`, run as a user would."""

import pytest
import torch

import rightly
from rightly.cli import main
from tests.deployment.tiny_models import Small
from tests.deployment.tiny_models import predictions as small_predictions


def test_a_card_holds_what_was_measured_and_the_hub_reads_it(place, tmp_path, capsys):
    predictions, labels = small_predictions()
    rightly.save(tmp_path / "test.npz", predictions, labels)
    out = tmp_path / "README.md"
    calibrator = ["--calibrator", str(place / "cal.safetensors")]
    on = ["--on", f"mine={tmp_path / 'test.npz'}", "--allow-overlap"]
    assert main(["card", str(place / "model.onnx"), *calibrator, *on, "--out", str(out)]) == 0
    text = out.read_text()
    assert "Accept where confidence ≥ 0.7000" in text and "| mine | 400 |" in text
    assert "4.00 forward passes" in text

    from huggingface_hub import ModelCard

    results = ModelCard.load(out).data.eval_results
    values = {result.metric_type: result.metric_value for result in results}
    fitted_again = rightly.load_calibrator(place / "cal.safetensors")
    correct = predictions.correct(labels)
    ece = rightly.metrics.ece(fitted_again.confidence(predictions), correct)
    assert values["ece"] == pytest.approx(ece)
    assert results[0].dataset_name == "mine"


def test_a_card_of_a_calibrator_alone_is_printed(place, capsys):
    assert main(["card", str(place / "cal.safetensors"), "--block"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("## Confidence calibration") and "ca_views" in printed


def test_a_card_measures_each_shift_by_itself(place, tmp_path, capsys):
    predictions, labels = small_predictions()
    both = rightly.Predictions(
        predictions.logits,
        predictions.view_logits,
        view_names=predictions.view_names,
        shift=torch.arange(400) % 2,
        shift_names=["blur:3"],
    )
    rightly.save(tmp_path / "test.npz", both, labels)
    on = ["--on", f"[b]={tmp_path / 'test.npz'}", "--allow-overlap"]
    assert main(["card", str(place / "cal.safetensors"), *on, "--block"]) == 0
    printed = capsys.readouterr().out
    assert r"| \[b\] | 200 |" in printed and "| blur:3 | 200 |" in printed


def test_a_saved_folder_has_its_calibrator_in_it(place, tmp_path, capsys):
    predictions, labels = small_predictions()
    rightly.save(tmp_path / "test.npz", predictions, labels)
    calibrator = rightly.load_calibrator(place / "cal.safetensors")
    rightly.CalibratedClassifier(Small(), calibrator).save_pretrained(tmp_path / "folder")
    on = ["--on", str(tmp_path / "test.npz"), "--allow-overlap"]
    assert main(["card", str(tmp_path / "folder"), *on, "--block"]) == 0
    assert "| test | 400 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{place}/model.onnx", "--on", "{place}/x.npz"], "--on needs --calibrator"),
        (["{place}/photos"], "must hold a config.json"),
    ],
)
def test_bad_arguments_end_in_one_line(place, capsys, arguments, message):
    assert main(["card", *(text.format(place=place) for text in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
