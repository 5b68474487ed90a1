"""Centres from which drift is counted: other shares of the same classes do not move the means."""

import numpy as np
import torch

import rightly
from rightly.calibrators.drift_reference import (
    ScoredRows,
    find_centres,
    learn_drift_reference,
    measure_agreement,
)


def draw(n=20_000, c=5, seed=0):
    """Classes of very different difficulty, confused with their neighbours."""
    rng = np.random.default_rng(seed)
    label = rng.integers(c, size=n)
    is_wrong = rng.random(n) < 0.05 + 0.1 * label
    predicted = np.where(is_wrong, (label + 1) % c, label)
    scores = rng.normal(3 - label - 2.0 * is_wrong, 1.0)
    return ScoredRows(scores, predicted, label, np.arange(n), np.ones(n))


def test_every_true_class_has_mean_0():
    rows = draw()
    values = np.stack([rows.score, rows.score**2, rows.agreement], 1)
    centred = values - find_centres(values, rows, 5)[rows.predicted]
    means = np.array([centred[rows.label == k].mean(0) for k in range(5)])
    assert np.abs(means).max() < 0.1
    # What a mean of each predicted class would leave under the hardest class alone.
    of_predicted = np.array([rows.score[rows.predicted == k].mean() for k in range(5)])
    assert abs((rows.score - of_predicted[rows.predicted])[rows.label == 4].mean()) > 1


def test_what_is_stored_is_small_and_standardised():
    reference = learn_drift_reference(draw(), 5)
    assert reference.rows.shape == (2000, 3) and int(reference.counts.sum()) == 20_000
    torch.testing.assert_close(reference.rows[:, 0].std(), torch.tensor(1.0), atol=0.05, rtol=0)
    assert reference.scale[2] == 0  # no views, no agreement to watch
    assert (reference.allowance < 0.1).all()


def test_agreement_is_the_share_of_views_that_predict_the_same():
    views = torch.tensor([[[2.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 3.0]]])
    predictions = rightly.Predictions(torch.tensor([[2.0, 0.0], [0.0, 2.0]]), views)
    calibrator = rightly.calibrator("ca_views")
    calibrator.view_names = predictions.view_names
    assert measure_agreement(calibrator, predictions, predictions.classes).tolist() == [0.5, 1.0]
    calibrator.view_names = ()
    assert measure_agreement(calibrator, predictions, predictions.classes).tolist() == [1.0, 1.0]
