"""Fitting for use: thresholds and the record that travel with a calibrator."""

import pytest
import torch

import rightly
from rightly import load_calibrator

SOURCE = {"name": "timm:x", "fingerprint": "ab" * 32, "preprocessing": {"size": [32, 32]}}


def test_the_record_says_what_was_fitted_on_what(sample):
    fitted = rightly.fit("temperature_scaling", *sample, source=SOURCE)
    assert fitted.record["classifier"] == SOURCE
    seen = fitted.record["calibration"]
    assert seen["samples"] == 300
    assert seen["accuracy"] == pytest.approx(float(sample[0].correct(sample[1]).double().mean()))
    confidence, correct = fitted.confidence(sample[0]), sample[0].correct(sample[1])
    assert seen["after"]["ece"] == pytest.approx(rightly.metrics.ece(confidence, correct))
    assert fitted.threshold is None and fitted.record["threshold"] is None


@pytest.mark.parametrize("method", ["temperature_scaling", "ca_views"])
def test_passes_count_the_image_and_the_views_that_are_read(sample, method):
    fitted = rightly.fit(method, *sample)
    assert fitted.record["passes"] == 1 + len(fitted.view_names)


def test_an_accuracy_sets_the_lowest_threshold_that_reaches_it(sample):
    fitted = rightly.fit("temperature_scaling", *sample, accuracy=0.9)
    accepted = fitted.accept(sample[0])
    correct = sample[0].correct(sample[1])
    assert correct[accepted].double().mean() >= 0.9
    assert fitted.record["threshold"]["accuracy"] >= 0.9
    confidence = fitted.confidence(sample[0])
    next_lower = confidence[confidence < fitted.threshold].max()
    assert correct[confidence >= next_lower].double().mean() < 0.9


def test_threshold_and_record_are_saved_and_loaded(sample, tmp_path):
    fitted = rightly.fit("ca_views", *sample, threshold=0.8, source=SOURCE)
    fitted.save(tmp_path / "c.safetensors")
    loaded = load_calibrator(tmp_path / "c.safetensors")
    assert loaded.threshold == 0.8
    assert loaded.record == fitted.record
    assert torch.equal(loaded.accept(sample[0]), fitted.accept(sample[0]))


def test_without_a_threshold_nothing_is_accepted_or_refused(sample):
    fitted = rightly.fit("temperature_scaling", *sample)
    with pytest.raises(ValueError, match="no threshold to accept by"):
        fitted.accept(sample[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.2}, "threshold must be a number from 0 to 1, got 1.2"),
        ({"threshold": 0.5, "accuracy": 0.9}, "exclude each other"),
        ({"accuracy": 1.0}, "accuracy must be one that some threshold reaches"),
    ],
)
def test_impossible_thresholds_are_refused(sample, arguments, message):
    predictions, labels = sample
    if arguments == {"accuracy": 1.0}:
        sure = predictions.confidence.argmax()
        labels = labels.clone()
        labels[sure] = (predictions.classes[sure] + 1) % 10  # the surest of all is wrong
    with pytest.raises(ValueError, match=message):
        rightly.fit("temperature_scaling", predictions, labels, **arguments)
