"""The ratio of distances, against SciPy."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from rightly.calibrators.correctness_logistic.neighbours import Neighbours


@pytest.fixture
def neighbours():
    g = torch.Generator().manual_seed(3)
    return Neighbours.of(torch.randn(40, 5, generator=g), torch.arange(40) % 4)


def test_it_is_the_ratio_of_distances_that_scipy_finds(neighbours):
    features, classes = torch.randn(9, 5), torch.arange(9) % 4
    distances = cdist(features, neighbours.features, "cosine")
    expected = []
    for distance, label in zip(distances, classes.tolist(), strict=True):
        same = neighbours.classes.numpy() == label
        other, near = (np.sort(distance[chosen])[:3].mean() for chosen in (~same, same))
        expected.append(np.log(other / near))
    found = neighbours.log_distance_ratio(features, classes)
    np.testing.assert_allclose(found, np.clip(expected, -4, 4), atol=1e-4)


def test_it_has_no_scale_and_each_sample_is_looked_at_alone(neighbours):
    features, classes = torch.randn(9, 5), torch.arange(9) % 4
    found = neighbours.log_distance_ratio(features, classes)
    alone = neighbours.log_distance_ratio(7 * features[:1], classes[:1])
    torch.testing.assert_close(alone, found[:1], rtol=1e-4, atol=1e-5)


def test_a_sample_is_not_its_own_neighbour():
    features = torch.randn(40, 5, generator=torch.Generator().manual_seed(3))
    classes, image = torch.arange(40) % 4, torch.arange(40)
    among = Neighbours.of(features, classes, image)
    others = Neighbours.of(features[1:], classes[1:])
    counted = among.log_distance_ratio(features, classes)[0]
    left_out = among.log_distance_ratio(features, classes, image)[0]
    torch.testing.assert_close(left_out, others.log_distance_ratio(features[:1], classes[:1])[0])
    assert counted > left_out


def test_a_class_that_no_neighbour_has_is_far(neighbours):
    found = neighbours.log_distance_ratio(torch.randn(3, 5), torch.full((3,), 9))
    assert torch.isfinite(found).all() and (found < 0).all()
