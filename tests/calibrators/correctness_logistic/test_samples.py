"""The rows of the regression."""

import numpy as np
import pytest
import torch

from rightly import Predictions
from rightly.calibrators.correctness_logistic.neighbours import Neighbours
from rightly.calibrators.correctness_logistic.samples import (
    PSEUDO_SHIFTED,
    Samples,
    compute_columns,
)
from rightly.calibrators.pseudo_shift import pseudo_shifted, take_turns, view_coupling
from tests.calibrators.correctness_logistic.data import augmented
from tests.conftest import make


def test_views_take_turns_in_the_place_of_the_image_and_the_others_follow():
    predictions, labels = make(n=50)
    shifted = pseudo_shifted(predictions, labels, take_turns(predictions))
    share = view_coupling(predictions, labels).float()
    for i in range(50):
        turn = i % 3
        seen = predictions.view_logits[i]
        assert torch.equal(shifted.logits[i], seen[turn])
        assert torch.equal(shifted.view_logits[i, turn], seen[turn])
        for k in {0, 1, 2} - {turn}:
            expected = seen[k] + share[k] * (seen[turn] - predictions.logits[i])
            torch.testing.assert_close(shifted.view_logits[i, k], expected)


def test_it_is_the_squared_slope_within_classes():
    predictions, labels = make(n=300, c=4)
    truth = labels.numpy()

    def apart(logits):
        rows = logits.numpy() - logits.numpy().mean(1, keepdims=True)
        means = np.stack([rows[truth == k].mean(0) for k in range(4)])
        return (rows - means[truth]).ravel()

    own = apart(predictions.logits)
    slopes = [
        np.polyfit(own, apart(predictions.view_logits[:, k]), 1)[0]
        for k in range(predictions.view_logits.shape[1])
    ]
    coupling = view_coupling(predictions, labels)
    np.testing.assert_allclose(coupling, np.clip(slopes, 0, 1) ** 2, atol=1e-5)


def test_the_image_itself_follows_wholly_and_noise_or_the_opposite_not_at_all():
    own, labels = make(n=4000)
    noise = torch.randn(own.logits.shape, generator=torch.Generator().manual_seed(1))
    views = torch.stack([own.logits, noise, -own.logits], 1)
    coupling = view_coupling(Predictions(own.logits, views), labels)
    torch.testing.assert_close(coupling, torch.tensor([1.0, 0, 0]).double(), atol=1e-3, rtol=0)


def test_images_that_do_not_differ_within_their_class_are_no_reason_to_follow():
    labels = torch.arange(10).repeat(3)
    logits = torch.eye(10)[labels] * 4.0
    coupling = view_coupling(Predictions(logits, torch.randn(30, 2, 10)), labels)
    assert torch.equal(coupling, torch.zeros(2).double())


def test_unshifted_samples_are_there_twice_with_their_image():
    predictions, labels = augmented(("gaussian_blur:3", "jpeg:2", "gaussian_blur:1"))
    samples = Samples.of(predictions, labels, 1.0, None)
    n = len(predictions)
    assert len(samples.kind) == n + 1500
    assert samples.shift_kinds() == [1, 2]
    assert (samples.kind[n:] == PSEUDO_SHIFTED).all()
    assert torch.equal(samples.image[n:], torch.arange(1500))
    assert torch.equal(samples.image[1500:2200], torch.arange(700))
    assert torch.equal(samples.correct[:n], predictions.correct(labels))
    images = predictions[predictions.unshifted()]
    views = pseudo_shifted(images, labels[:1500], take_turns(images))
    assert torch.equal(samples.classes[n:], views.classes)
    assert torch.equal(samples.correct[n:], views.classes == labels[:1500])


def test_a_subsample_keeps_whole_images_in_groups_of_the_folds():
    samples = Samples.of(*augmented(), 1.0, None)
    assert samples.subsample(len(samples.kind), folds=4) is samples
    subset = samples.subsample(len(samples.kind) // 3 + 1, folds=4)
    kept = subset.image.unique()
    assert torch.equal(kept, torch.arange(1500)[torch.arange(1500) // 4 % 3 == 0])
    for image in kept[:5]:
        assert (subset.image == image).sum() == (samples.image == image).sum()


@pytest.mark.parametrize(("c", "width"), [(32, 7 + 64), (33, 7)])
def test_few_classes_have_a_column_each_for_image_and_views(c, width):
    predictions, _ = make(n=20, c=c)
    assert compute_columns(predictions, 1.0, None).shape == (20, width)


def test_pseudo_shifted_rows_take_the_neighbours_of_their_image():
    predictions, labels = make(n=40)
    neighbours = Neighbours.of(predictions.features, labels, torch.arange(40))
    samples = Samples.of(predictions, labels, 1.0, neighbours)
    assert torch.equal(samples.columns[:40, 1], samples.columns[40:, 1])
