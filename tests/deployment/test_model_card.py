"""Model cards: what is measured, and what stands in the text."""

import json
from functools import partial

import pytest
import torch

import rightly
from rightly import CalibratedClassifier
from rightly.deployment import model_card
from rightly.deployment.model_card import read_metadata
from tests.deployment.tiny_models import Small, fitted, predictions
from tests.deployment.tiny_onnx import METADATA, write_onnx

make_card = partial(model_card.make_card, allow_overlap=True)  # measured on what was fitted


def read_header(card):
    lines = card.split("---\n")[1].splitlines()
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in lines)}


def test_a_card_holds_what_was_measured_on_each_test_set():
    calibrator = fitted(threshold=0.7)
    collected, labels = predictions()
    card = make_card(calibrator, {"mine": (collected, labels)})
    assert "Accept where confidence ≥ 0.7000" in card and "| mine | 400 |" in card
    assert "4.00 forward passes" in card and "always the classifier's own" in card
    (result,) = read_header(card)["model-index"][0]["results"]
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    correct = collected.correct(labels)
    expected = rightly.metrics.ece(calibrator.confidence(collected), correct)
    assert values["ece"] == pytest.approx(expected, rel=1e-12)
    assert values["accuracy"] == pytest.approx(float(correct.double().mean()))
    accepted = calibrator.accept(collected)
    share = f"On mine: accepted from confidence 0.7000: {float(accepted.double().mean()):.1%}, "
    assert share + f"{float(correct[accepted].double().mean()):.2%} of them correct" in card


def test_a_card_tells_nominal_and_observed_coverage():
    collected, labels = predictions()
    calibrator = rightly.fit(collected, labels, "temperature_scaling", coverage=0.8)
    tests = {"mine": (collected[1::2], labels[1::2])}
    low, high = calibrator.sets.coverage_interval()
    (quality,) = rightly.evaluate(calibrator, tests, allow_overlap=True).set_quality.values()
    card = make_card(calibrator, tests)
    assert "(lac) hold the true class of 80 % of images like the 200 held out: given these" in card
    assert f"of {100 * low:.1f} % to {100 * high:.1f} %" in card
    assert "this holds for data like the calibration data" in card
    assert f"On mine, sets hold the true class of {100 * quality.coverage:.1f} % (95 %" in card
    adapted = make_card(calibrator.adapt(collected), tests)
    assert "No coverage is claimed; guarantee void: adapted data" in adapted
    assert "On mine, sets have" in adapted and "hold the true class" not in adapted


def test_each_shift_is_measured_by_itself_and_views_are_chosen():
    collected, labels = predictions()
    both = rightly.Predictions(
        collected.logits,
        collected.view_logits[:, [2, 1, 0]],
        view_names=collected.view_names[::-1],
        shift=torch.arange(400) % 2,
        shift_names=["blur:3"],
    )
    card = make_card(fitted(), {"mine": (both, labels)})
    straight = rightly.Predictions(
        collected.logits[::2], collected.view_logits[::2], view_names=collected.view_names
    )
    alone = make_card(fitted(), {"mine": (straight, labels[::2])}, block_only=True)
    row = next(line for line in alone.splitlines() if line.startswith("| mine |"))
    assert row in card and "| blur:3 | 200 |" in card
    assert "No threshold was asked for" in card
    with pytest.raises(ValueError, match=r"'blur:3' twice"):
        make_card(fitted(), {"mine": (both, labels), "blur:3": (collected, labels)})


@pytest.mark.filterwarnings("ignore:all 400 calibration samples are predicted right")
def test_a_metric_that_is_not_defined_is_left_out():
    collected, _ = predictions()
    card = make_card(fitted(), {"all right": (collected, collected.classes)})
    (result,) = read_header(card)["model-index"][0]["results"]
    assert "auroc" not in {metric["type"] for metric in result["metrics"]}
    assert "NaN" not in card and "nan" not in card


def test_metadata_come_from_files_folders_and_calibrators(tmp_path):
    calibrator = fitted("temperature_scaling")
    calibrator.save(tmp_path / "cal.safetensors")
    CalibratedClassifier(Small(), calibrator).save_pretrained(tmp_path / "saved")
    assert read_metadata(write_onnx(tmp_path / "m.onnx")) == METADATA
    assert read_metadata(tmp_path / "cal.safetensors") == read_metadata(calibrator)
    assert read_metadata(tmp_path / "saved")["classifier"]["fingerprint"]
    with pytest.raises(FileNotFoundError, match=r"must hold a config\.json"):
        read_metadata(tmp_path)


def test_an_exported_file_is_measured_by_its_calibrator(tmp_path):
    path = write_onnx(tmp_path / "m.onnx", width=None, class_count=4, class_names=None)
    tests = {"mine": predictions()}
    with pytest.raises(ValueError, match="tests need calibrator="):
        make_card(path, tests)
    calibrator = fitted("temperature_scaling")
    CalibratedClassifier(Small(), calibrator).save_pretrained(tmp_path / "saved")
    cards = [make_card(path, tests, source) for source in (calibrator, tmp_path / "saved")]
    assert cards[0] == cards[1] and "| mine | 400 |" in cards[0]
    with pytest.raises(ValueError, match="use the two that were written together"):
        make_card(path, tests, fitted("multi_isotonic"))


def test_predictions_are_read_from_a_path_and_need_labels(tmp_path):
    collected, labels = predictions()
    rightly.save(tmp_path / "test.npz", collected, labels)
    rightly.save(tmp_path / "bare.npz", collected)
    calibrator = fitted("temperature_scaling")
    from_path = make_card(calibrator, {"mine": tmp_path / "test.npz"})
    assert from_path == make_card(calibrator, {"mine": (collected, labels)})
    with pytest.raises(ValueError, match=r"tests\['bare'\] must hold labels"):
        make_card(calibrator, {"bare": tmp_path / "bare.npz"})


def test_the_block_alone_has_no_header():
    assert make_card(fitted(), block_only=True).startswith("## Confidence calibration")
