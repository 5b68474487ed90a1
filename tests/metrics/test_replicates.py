"""Outcomes and their resamples against counting by hand."""

import numpy as np
import pytest

from rightly.metrics import Outcomes, Replicates
from rightly.metrics.replicates import bin_ends, sum_by_bin, sum_by_level
from rightly.resampling import draw_resamples
from tests.metrics.synthetic import make_outcomes


@pytest.mark.parametrize("decimals", [None, 1])
def test_sums_are_of_the_copied_samples_up_to_each_distinct_confidence(decimals):
    outcomes = make_outcomes(80, decimals=decimals)
    (counts,) = draw_resamples(80, 4)
    w = Replicates(outcomes, counts)
    for i, level in enumerate(outcomes.levels):
        below = outcomes.confidence <= level
        for b, count in enumerate(counts):
            rows = np.repeat(np.flatnonzero(below), count[below])
            correct = outcomes.correct[rows]
            assert (w.weight[b, i], w.right[b, i]) == (len(rows), correct.sum())
            assert w.wrong[b, i] == (~correct).sum()
            excess = (outcomes.confidence[rows] - correct).sum()
            assert w.excess[b, i] / outcomes.unit == pytest.approx(excess, abs=1e-12)


def test_sums_by_bin_and_by_level_undo_a_cumulative_sum():
    steps = np.array([[1, 0, 2, 5], [0, 3, 1, 1]])
    cumulative = steps.cumsum(-1)
    np.testing.assert_array_equal(sum_by_level(cumulative), steps)
    # Bins of two, no and two levels.
    np.testing.assert_array_equal(
        sum_by_bin(cumulative, np.array([0, 2, 2, 4])), [[1, 0, 7], [3, 0, 2]]
    )


def test_the_ends_of_bins_count_the_levels_below_them():
    levels = np.array([0.0, 0.04, 0.05, 0.5, 1.0])
    ends = bin_ends(levels)
    assert (ends[0], ends[1], ends[2], ends[-1]) == (0, 2, 3, 5)  # 0.04 closes the first bin


def test_the_two_arguments_of_a_metric_are_chosen_by_what_it_looks_at():
    outcomes = make_outcomes(3)
    assert outcomes.inputs("confidence") == (outcomes.confidence, outcomes.correct)
    assert outcomes.inputs("probabilities") == (outcomes.probabilities, outcomes.labels)
    without = Outcomes(outcomes.confidence, outcomes.correct)
    with pytest.raises(ValueError, match="need probabilities and labels"):
        without.inputs("probabilities")
