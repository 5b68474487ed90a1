"""What measures false alarms and delays, on the packaged predictions."""

import argparse
import re

from benchmarks.own import drift_alarms

import rightly
from rightly.demo_data import load_demo_set


def test_few_false_alarms_and_a_shift_that_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "resnet20").mkdir()
    for name in ("cal", "ind", "haze"):
        rightly.save(tmp_path / "resnet20" / f"{name}.npz", *load_demo_set(name))
    monkeypatch.setattr(drift_alarms, "STARTS", 5)
    options = argparse.Namespace(predictions=tmp_path, samples_per_day=100.0, years=3)
    cells = drift_alarms.measure("resnet20", "temperature_scaling", options).split(" | ")
    assert max(float(value) for value in re.findall(r"[\d.]+", cells[0])) <= 2
    assert re.fullmatch(r"haze (64|128|192|256)", cells[2])
