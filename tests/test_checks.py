"""What metrics accept: bad input is refused, by its name and with a remedy."""

import math

import numpy as np
import pytest
import torch

from rightly.checks import check_confidence, check_count, check_probabilities

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize(
    ("confidence", "correct", "error", "message"),
    [
        ([0.5, 0.5], [1, 0], TypeError, "correct must be boolean.*predictions == labels"),
        ([0.5, 0.5], [1.0, 0.0], TypeError, "correct must be boolean.*swapped"),
        ([], [], ValueError, "confidence must be a non-empty vector"),
        (np.array(0.5), np.array(True), ValueError, "confidence must be a non-empty vector"),
        ([[0.5, 0.5]], [[True, False]], ValueError, r"confidence .* got shape \(1, 2\)"),
        ([0.5, 0.5], [True], ValueError, r"correct must have shape \(2,\).* got \(1,\)"),
        ([0.5, 0.5], [[True], [False]], ValueError, "correct must have shape"),
        ([0.5, math.nan], [True, False], ValueError, "confidence must be finite, got 1 of 2"),
        ([0.5, math.inf], [True, False], ValueError, "confidence must be finite"),
        ([0.5, -0.1], [True, False], ValueError, r"confidence must lie in \[0, 1\].*-0\.1"),
        ([0.5, 93.0], [True, False], ValueError, r"confidence must lie in \[0, 1\].*percentages"),
        (["0.5", "0.6"], [True, False], TypeError, "confidence must hold real numbers"),
        ([[0.5], [0.5, 0.5]], [True, False], ValueError, "confidence must be an array"),
    ],
)
def test_bad_confidence_is_refused_by_name(confidence, correct, error, message):
    with pytest.raises(error, match=message):
        check_confidence(confidence, correct)


@pytest.mark.parametrize(
    ("probabilities", "labels", "error", "message"),
    [
        (PROBABILITIES, [0.0, 1.0, 1.0, 2.0], TypeError, "labels must be integers.*float64"),
        (PROBABILITIES, [True] * 4, TypeError, "labels must be integers.*bool"),
        (PROBABILITIES, [0, 1, 1], ValueError, r"labels must have shape \(4,\).*\(3,\)"),
        (PROBABILITIES, [0, 1, 1, 3], ValueError, r"labels must lie in \[0, 2\].*0 to 3"),
        (PROBABILITIES, [-1, 1, 1, 2], ValueError, "labels must lie in"),
        ([0.5, 0.5], [0, 1], ValueError, r"probabilities must have shape \(n, c\)"),
        ([], [], ValueError, r"probabilities must have shape \(n, c\)"),
        ([[2.0, -1.0]], [0], ValueError, "probabilities must be non-negative.*softmax"),
        ([[0.5, 0.4]], [0], ValueError, "probabilities must be.*sum to 1.*0.9"),
        ([[0.5, 0.502]], [0], ValueError, "probabilities must be.*sum to 1.*1.002"),
        ([[0.5, math.nan]], [0], ValueError, "probabilities must be finite"),
        ([["a", "b"]], [0], TypeError, "probabilities must hold real numbers"),
    ],
)
def test_bad_probabilities_are_refused_by_name(probabilities, labels, error, message):
    with pytest.raises(error, match=message):
        check_probabilities(probabilities, labels)


@pytest.mark.parametrize(
    ("bins", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_bins_that_are_no_positive_whole_number_are_refused(bins, error):
    with pytest.raises(error, match="bins must be"):
        check_count("bins", bins)


def test_rounding_noise_above_one_is_clipped_and_more_is_refused():
    confidence, _ = check_confidence([1 + 1e-9, 0.25], [True, False])
    assert confidence.tolist() == [1, 0.25]
    with pytest.raises(ValueError, match="confidence must lie in"):
        check_confidence([1 + 1e-6, 0.25], [True, False])


def test_rows_that_sum_to_one_but_for_half_precision_are_accepted():
    probabilities, labels = check_probabilities(PROBABILITIES * 1.0009, [0, 1, 1, 2])
    np.testing.assert_array_equal(probabilities, PROBABILITIES * 1.0009)
    assert labels.dtype == np.int64


def test_tensors_become_float64_and_booleans_whatever_their_type():
    tensor = torch.tensor([0.25, 0.75], requires_grad=True)
    for same in (tensor, tensor.bfloat16(), tensor.half(), [0.25, 0.75], np.float32([0.25, 0.75])):
        confidence, correct = check_confidence(same, torch.tensor([True, False]))
        assert confidence.dtype == np.float64 and correct.dtype == bool
        assert confidence.tolist() == [0.25, 0.75]
