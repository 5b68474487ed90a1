"""`--card FILE`: a model card of what was evaluated or exported."""

import pytest
import torch

import rightly
from rightly.cli import main
from tests.deployment.tiny_models import predictions as small_predictions


def write_card(place, test, out):
    arguments = [str(place / "cal.safetensors"), test, "--allow-overlap", "--no-intervals"]
    assert main(["evaluate", *arguments, "--card", str(out)]) == 0
    return out.read_text()


def test_a_card_holds_what_was_measured_and_the_hub_reads_it(place, tmp_path, capsys):
    predictions, labels = small_predictions()
    rightly.save(tmp_path / "test.npz", predictions, labels)
    out = tmp_path / "README.md"
    text = write_card(place, f"mine={tmp_path / 'test.npz'}", out)
    assert f"the model card is in {out}" in capsys.readouterr().out
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


def test_a_card_of_an_exported_file_is_its_metadata(place):
    text = (place / "card.md").read_text()
    assert "## Confidence calibration" in text and "ca_views" in text


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
    text = write_card(place, f"[b]={tmp_path / 'test.npz'}", tmp_path / "card.md")
    assert r"| \[b\] | 200 |" in text and "| blur:3 | 200 |" in text
