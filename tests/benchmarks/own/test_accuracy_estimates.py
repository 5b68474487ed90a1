"""Accuracy without labels: values by hand, and what is refused."""

import numpy as np
import pytest
from benchmarks.own.accuracy_estimates import atc, average_confidence, doc

CONFIDENCE = [0.9, 0.2, 0.6, 0.4]
CORRECT = np.array([True, False, True, True])


def test_average_confidence_is_the_mean():
    assert average_confidence([0.2, 0.4, 0.9]) == pytest.approx(0.5)


def test_atc_counts_what_reaches_the_threshold_below_which_the_share_of_errors_lies():
    # One of four is wrong, so that the threshold is the second lowest confidence, 0.4.
    assert atc(CONFIDENCE, CORRECT, [0.1, 0.39, 0.4, 0.5, 0.95]) == pytest.approx(3 / 5)


def test_atc_and_doc_of_the_calibration_data_are_their_accuracy():
    assert atc(CONFIDENCE, CORRECT, CONFIDENCE) == doc(CONFIDENCE, CORRECT, CONFIDENCE) == 0.75


@pytest.mark.parametrize(("wrong", "expected"), [(0, 1.0), (1, 1.0), (3, 0.25), (4, 0.0)])
def test_atc_takes_the_nearest_share_that_ties_allow(wrong, expected):
    confidence = np.array([0.5, 0.5, 0.5, 0.9])  # none, three or all can lie below a threshold
    assert atc(confidence, np.arange(4) >= wrong, confidence) == expected


def test_doc_takes_the_drop_in_mean_confidence_off_the_accuracy():
    assert doc(CONFIDENCE, CORRECT, [0.3, 0.4]) == pytest.approx(0.75 - (0.525 - 0.35))


def test_doc_stays_between_0_and_1():
    assert doc([0.1, 0.1], np.array([True, True]), [1.0]) == 1
    assert doc([0.9, 0.9], np.array([False, False]), [0.1]) == 0


@pytest.mark.parametrize("estimate", [atc, doc])
def test_refusals_name_the_argument(estimate):
    with pytest.raises(ValueError, match="unlabelled must be a non-empty vector"):
        estimate(CONFIDENCE, CORRECT, [])
    with pytest.raises(ValueError, match=r"unlabelled must lie in \[0, 1\], got values from 2"):
        estimate(CONFIDENCE, CORRECT, [2.0, 90.0])
    with pytest.raises(ValueError, match="unlabelled must be finite, got 1 of 2"):
        estimate(CONFIDENCE, CORRECT, [0.5, np.nan])
    with pytest.raises(TypeError, match="are the arguments swapped"):
        estimate(CORRECT, CONFIDENCE, [0.5])
    with pytest.raises(ValueError, match="correct must have shape"):
        estimate(CONFIDENCE, CORRECT[:3], [0.5])


def test_average_confidence_refuses_what_is_no_confidence():
    with pytest.raises(ValueError, match="confidence must be a non-empty vector"):
        average_confidence([[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"confidence must lie in \[0, 1\]"):
        average_confidence([-0.1])
