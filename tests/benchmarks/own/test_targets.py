"""Means, targets and ranks of the own calibrator, against numbers by hand."""

import pytest
from benchmarks.long_table import Entry
from benchmarks.own.targets import SIDES, compute_gain, format_ranks, format_targets, select_side

VALUES = {  # in distribution, under shift
    ("temperature_scaling", "ece"): (0.02, 0.10),
    ("temperature_scaling", "brier"): (0.10, 0.20),
    ("temperature_scaling", "ks"): (0.02, 0.10),
    ("temperature_scaling", "auroc"): (0.80, 0.70),
    ("correctness_logistic", "ece"): (0.021, 0.08),
    ("correctness_logistic", "brier"): (0.09, 0.19),
    ("correctness_logistic", "ks"): (0.02, 0.08),
    ("correctness_logistic", "auroc"): (0.82, 0.74),
}
ENTRIES = [
    Entry("own", "one", test, method, 0, metric, value, 10, 0.1)
    for (method, metric), both in VALUES.items()
    for test, value in zip(("ind", "gaussian_blur"), both, strict=True)
]


def test_gains_are_points_and_ratios_to_temperature_scaling():
    in_distribution, shifted = (
        compute_gain(select_side(ENTRIES, side), "correctness_logistic", side) for side in SIDES
    )
    assert in_distribution == pytest.approx((0.1, 0.9, 2.0))
    assert shifted == pytest.approx((0.8, 0.95, 4.0))


def test_a_missed_target_is_marked():
    line = format_targets(ENTRIES)[-1]
    assert line.count("MISSED") == 1 and "brier 0.950 (0.9 MISSED)" in line


def test_ranks_share_ties():
    lines = {line.split()[0]: line.split()[1:] for line in format_ranks(ENTRIES)[1:]}
    # Better in two of four metrics in distribution, worse in one, equal in KS.
    assert lines == {
        "correctness_logistic": ["1.38", "1.00"],
        "temperature_scaling": ["1.62", "2.00"],
    }
