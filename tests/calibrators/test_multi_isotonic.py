"""One isotonic map: against scikit-learn on all pairs."""

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

import rightly
from rightly import Predictions
from rightly.calibrators.multi_isotonic import isotonic_map
from tests.calibrators.samples import draw_labels, draw_logits


@pytest.mark.parametrize(("n", "c", "decimals"), [(400, 7, 9), (2000, 10, 1), (30, 2, 9)])
def test_it_is_scikit_learns_isotonic_regression_of_all_pairs(n, c, decimals):
    logits = draw_logits(n, c, scale=3, seed=n).round(decimals=decimals)
    labels = draw_labels(logits * 0.7)
    xs, ys = isotonic_map(logits, labels)
    p = (logits - logits.logsumexp(-1, keepdim=True)).exp().flatten().numpy()
    one_hot = torch.nn.functional.one_hot(labels, c).flatten().numpy()
    reference = IsotonicRegression(out_of_bounds="clip").fit(p, one_hot)
    places = np.concatenate([p, np.linspace(0, 1, 1001)])
    np.testing.assert_allclose(np.interp(places, xs, ys), reference.predict(places), atol=1e-12)


def test_fitted_values_sum_to_the_labels():
    logits = draw_logits(500, 6)
    labels = draw_labels(logits)
    xs, ys = isotonic_map(logits, labels)
    p = (logits - logits.logsumexp(-1, keepdim=True)).exp().flatten()
    assert np.interp(p.numpy(), xs, ys).sum() == pytest.approx(500)
    assert (np.diff(ys) >= 0).all() and (np.diff(xs) > 0).all()


def test_calibrated_probabilities_stay_near_themselves():
    logits = draw_logits(30_000, 5)
    xs, ys = isotonic_map(logits, draw_labels(logits))
    grid = np.linspace(0.02, 0.98, 50)
    assert np.abs(np.interp(grid, xs, ys) - grid).mean() < 0.01


def test_rows_that_map_to_zero_keep_their_probabilities():
    logits = torch.tensor([[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0], [8.0, 0, 0]]).double()
    fitted = rightly.calibrator("multi_isotonic").fit(
        Predictions(logits), torch.tensor([0, 1, 2, 1])
    )
    flat = Predictions(torch.tensor([[0.1, 0.0, 0.0]]))
    rows = fitted.probabilities(flat)
    assert torch.isfinite(rows).all() and rows.argmax(-1).tolist() == [0]
