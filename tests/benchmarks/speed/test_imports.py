"""Ratios of import times to their targets."""

from benchmarks.speed.imports import format_ratios, time_commands


def test_ratios_are_to_torch_and_missed_targets_are_marked():
    best = {"python": 0.01, "import torch": 2.0, "import rightly": 0.5, "rightly --help": 0.8}
    lines = format_ratios(best)
    assert [line.split()[-1] for line in lines[-2:]] == ["MISSED", "0.50"]
    assert "0.250" in lines[-2] and "0.400" in lines[-1]


def test_every_command_is_run():
    seconds = time_commands({"one": ("-c", "pass"), "two": ("-c", "import json")}, rounds=1)
    assert set(seconds) == {"one", "two"} and all(0 < value < 60 for value in seconds.values())
