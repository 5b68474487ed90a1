"""The table that `make bench` prints."""

import torch
from benchmarks.speed.costs import Cost
from benchmarks.speed.timing import Paired, time_beside_unit

from tests.processes import run_python


def test_units_are_printed_beside_targets_and_missed_ones_are_marked():
    kept, missed = (Cost("fit", "spline", Paired(s, 0.5, 0.25), 3) for s in (1.0, 2.0))
    assert kept.format().split() == ["fit", "spline", "1000.00", "500.00", "2.00", "3", "4.00"]
    assert missed.format().split()[-4:] == ["4.00", "3", "8.00", "MISSED"]


def test_a_call_is_timed_in_turn_with_its_unit():
    calls = []
    paired = time_beside_unit(lambda: calls.append(1), torch.rand(50, 4), 3)
    assert len(calls) == 4  # the first is not timed
    assert min(paired) > 0


def test_one_command_prints_metrics_calibrators_and_growth():
    command = ["-m", "benchmarks.speed.costs", "--n", "300", "--c", "20"]
    command += ["--pairs", "1000", "--most", "20000"]
    printed = run_python(*command, check=True).stdout
    for part in ("1,000 pairs, float64", "auroc alone", "300 x 20 on cpu", "(3 views)", "c = 10"):
        assert part in printed
    for call in ("fit", "confidence", "probabilities"):
        assert sum(line.startswith(f"{call} ") for line in printed.splitlines()) >= 7
