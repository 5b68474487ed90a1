"""The table that `make bench` prints."""

import subprocess
import sys

from benchmarks.speed.costs import Cost


def test_units_are_printed_beside_targets_and_missed_ones_are_marked():
    kept, missed = (Cost("fit", "spline", seconds, 0.5, 3) for seconds in (1.0, 2.0))
    assert kept.format().split() == ["fit", "spline", "1000.00", "2.00", "3"]
    assert missed.format().split()[-3:] == ["4.00", "3", "MISSED"]


def test_one_command_prints_metrics_calibrators_and_growth():
    command = [sys.executable, "-m", "benchmarks.speed.costs", "--n", "300", "--c", "20"]
    command += ["--pairs", "1000", "--most", "20000"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    for part in ("1,000 pairs, float64", "auroc alone", "300 x 20 on cpu", "(3 views)", "c = 10"):
        assert part in run.stdout
    for call in ("fit", "confidence", "probabilities"):
        assert sum(line.startswith(f"{call} ") for line in run.stdout.splitlines()) >= 7
