"""When a file counts as computing the same."""

from dataclasses import replace

import numpy as np
import pytest

from rightly.deployment.parity import compare_outputs, make_synthetic_images
from tests.deployment.test_outputs import make_outputs


def test_equal_outputs_differ_in_nothing():
    ours = make_outputs()
    assert set(compare_outputs(ours, ours).values()) == {0}


def test_the_largest_difference_counts():
    ours = replace(make_outputs(), temperature=np.ones(3), accept=np.array([True, True, False]))
    theirs = replace(
        ours,
        confidence=ours.confidence + np.array([0, 0.02, -0.01]),
        temperature=np.array([1, 1, np.e]),
        accept=np.array([True, False, True]),
    )
    differences = compare_outputs(ours, theirs)
    assert differences["confidence"] == pytest.approx(0.02)
    assert differences["log_temperature"] == pytest.approx(1)
    assert differences["accept_differs"] == 2 and differences["classes_differ"] == 0


def test_another_class_counts_unless_both_are_as_likely():
    ours = make_outputs()
    theirs = replace(ours, classes=np.array([0, 1, 1]))
    assert compare_outputs(ours, theirs)["classes_differ"] == 0
    sure = replace(theirs, probabilities=np.array([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6]]))
    assert compare_outputs(ours, sure)["classes_differ"] == 1


def test_synthetic_images_are_the_same_every_time_and_unlike_each_other():
    images = make_synthetic_images(3, (20, 24))
    assert images.shape == (3, 20, 24, 3) and images.dtype == np.uint8
    assert np.array_equal(images, make_synthetic_images(3, (20, 24)))
    assert not np.array_equal(images[0], images[1]) and images.std() > 10
