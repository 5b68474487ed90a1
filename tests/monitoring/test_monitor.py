"""`rightly monitor` on real predictions: quiet without drift, an alarm with it."""

import copy
import json

import numpy as np
import pytest

import rightly
from rightly.cli import main
from rightly.demo_data import load_demo_set
from rightly.monitoring import monitor_log
from tests.deployment.tiny_onnx import GUARANTEED

RATE = ["--samples-per-day", "400"]


@pytest.fixture(scope="module")
def saved(calibrator, tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "cal.safetensors"
    calibrator.save(path)
    return str(path)


def test_no_drift_is_no_alarm(saved, write_log, tmp_path, capsys):
    predictions, labels = load_demo_set("ind")
    log = write_log(tmp_path / "log.csv", predictions, label=labels.tolist())
    assert main(["monitor", saved, str(log), *RATE]) == 0
    captured = capsys.readouterr()
    assert "no alarm in 2500 rows" in captured.out and "expected accuracy" in captured.out
    assert "shift score, confidence and class prior" in captured.err


def test_drift_ends_with_4_and_says_what_changed_when(saved, write_log, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    before, first = load_demo_set("ind")
    after, then = load_demo_set("haze")
    both = rightly.concatenate([before, after])
    labels = first.tolist() + then.tolist()
    time = (1.7e9 + np.arange(5000) * 216.0).tolist()  # 400 a day
    log = write_log(tmp_path / "log.csv", both, label=labels, time=time)
    plot, values = tmp_path / "drift.svg", tmp_path / "drift.json"
    arguments = ["monitor", saved, str(log), "--window", "500"]
    assert main([*arguments, "--plot", str(plot), "--json", str(values)]) == 4
    printed = capsys.readouterr().out
    assert "ALARM, shift:" in printed and "fell, noticed at row" in printed
    assert "expected accuracy" in plot.read_text()
    report = json.loads(values.read_text())
    assert report["status"].startswith("shift") and report["samples_per_day"] == pytest.approx(
        400, abs=1
    )
    alarm = report["alarms"][0]
    assert 2300 < alarm["since_row"] <= 2560 and 2500 <= alarm["row"] < 2500 + 10 * 64
    assert len(report["windows"]) == 10
    for window in report["windows"]:
        expected = window["expected_accuracy"]
        assert expected["low"] < window["accuracy"] < expected["high"]


def test_drift_voids_the_guarantee(calibrator, write_log, tmp_path, capsys):
    guaranteed = copy.deepcopy(calibrator)
    guaranteed.decision = GUARANTEED
    guaranteed.save(tmp_path / "cal.safetensors")
    for name, code, words in (
        ("ind", 0, "(guaranteed, confidence level 95 %)"),
        ("haze", 4, "guarantee void: drift alarm (shift"),
    ):
        log = write_log(tmp_path / f"{name}.csv", load_demo_set(name)[0])
        values = tmp_path / f"{name}.json"
        files = [str(tmp_path / "cal.safetensors"), str(log)]
        assert main(["monitor", *files, "--json", str(values), *RATE]) == code
        printed = " ".join(capsys.readouterr().out.split())
        assert "decision: of 1,000 samples about 700 accepted" in printed and words in printed
        void = json.loads(values.read_text())["decision"]["void"]
        assert void == (f"drift alarm ({monitor_status(values)})" if code else None)


def monitor_status(values):
    return json.loads(values.read_text())["status"]


def test_a_changed_class_prior_is_named_after_its_class(calibrator, write_log, tmp_path):
    predictions, labels = load_demo_set("ind")
    ships = (labels == 8).nonzero().squeeze(1)
    rows = np.concatenate([np.arange(1000), np.tile(ships.numpy(), 4)])
    log = write_log(tmp_path / "log.csv", predictions[rows])
    found = monitor_log(log, calibrator, samples_per_day=400.0)
    assert [alarm.name for alarm in found.alarms] == ["class prior"]
    assert found.alarms[0].what in ("share of ship rose", "share of class 8 rose")


def test_views_are_watched_too(tmp_path):
    cal = load_demo_set("cal")
    calibrator = rightly.calibrator("ca_views").fit(*cal).learn_shift(*cal)
    predictions, _ = load_demo_set("pixelate")
    from rightly.calibrators.drift_reference import measure_agreement

    classes, confidence = calibrator.classes(predictions), calibrator.confidence(predictions)
    rows = [
        {"class": k, "confidence": p, "shift_score": r, "agreement": a}
        for k, p, r, a in zip(
            classes.tolist(),
            confidence.tolist(),
            calibrator.shift.shift_scores(confidence, classes).tolist(),
            measure_agreement(calibrator, predictions, classes).tolist(),
            strict=True,
        )
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = monitor_log(log, calibrator, samples_per_day=400.0)
    assert found.watched == ("shift score", "confidence", "agreement")
    assert found.alarms[0].name == "shift"


def test_what_the_rate_is_must_be_known(saved, write_log, tmp_path, capsys):
    log = write_log(tmp_path / "log.csv", load_demo_set("ind")[0][:100])
    assert main(["monitor", saved, str(log)]) == 2
    assert "samples_per_day is needed" in capsys.readouterr().err


@pytest.mark.parametrize(("every_s", "rate"), [(30.0, None), (36.0, 2400.0)])
def test_a_rate_is_extrapolated_only_from_a_day_of_log(
    calibrator, write_log, tmp_path, every_s, rate
):
    time = (1.7e9 + every_s * np.arange(2500)).tolist()  # 20.8 h, 25 h
    log = write_log(tmp_path / "log.csv", load_demo_set("ind")[0], time=time)
    report = monitor_log(log, calibrator)
    assert report.samples_per_day == (rate if rate is None else pytest.approx(rate, rel=1e-3))
    assert report.plan.block == 64 and report.plan.seconds == 3600 and report.blocks > 15


def test_seconds_of_traffic_are_not_tested(saved, write_log, tmp_path, capsys):
    both = load_demo_set("haze")[0]
    log = write_log(tmp_path / "log.csv", both, time=(1.7e9 + 0.01 * np.arange(2500)).tolist())
    assert main(["monitor", saved, str(log)]) == 0
    printed = capsys.readouterr().out
    assert "nothing tested yet: 2500 rows do not fill a block of at least 64 samples and 1 h" in (
        printed
    )
    assert main(["monitor", saved, str(log), *RATE]) == 4  # in samples


def test_classes_of_another_classifier_are_refused(calibrator, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"class": 10, "confidence": 0.5, "shift_score": 0}\n')
    with pytest.raises(ValueError, match="classes below 10"):
        monitor_log(log, calibrator, samples_per_day=1.0)
