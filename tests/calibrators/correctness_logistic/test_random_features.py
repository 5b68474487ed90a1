"""Random features, against NumPy."""

import numpy as np
import pytest
import torch

from rightly.calibrators.correctness_logistic.settings import SETTINGS, Settings
from rightly.calibrators.correctness_logistic.two_stage_fit import RandomFeatures
from rightly.calibrators.solvers.ridge_logistic import (
    Rows,
    fit_platt,
    fit_ridge_logistic,
)


def solve(rows, penalty):
    solution = fit_ridge_logistic(rows, penalty, 1.0, 1)
    score = solution.logits(rows.design, rows.classes)
    return solution.rescale(fit_platt(score, rows.correct, rows.weight))


def test_they_are_what_numpy_makes_of_them():
    columns = torch.randn(50, 4, dtype=torch.float64) * 3 + 1
    columns[:, 3] = 7.0  # never changes
    features = RandomFeatures.draw(columns, Settings(random_features=6))
    x = columns.numpy()
    spread = x.std(0)
    spread[3] = 1.0
    bound = SETTINGS.max_deviation
    z = np.clip((x - x.mean(0)) / spread, -bound, bound) @ features.weights.numpy()
    z = z + features.biases.numpy()
    design = features.append_to(columns).numpy()
    np.testing.assert_allclose(design[:, :4], x)
    np.testing.assert_allclose(design[:, 4:], z / (1 + np.exp(-z)), rtol=1e-10)


def test_far_out_nothing_new_is_claimed():
    columns = torch.randn(50, 3, dtype=torch.float64)
    features = RandomFeatures.draw(columns, Settings(random_features=5))
    far, farther = (features.append_to(torch.full((1, 3), x).double())[:, 3:] for x in (1e3, 1e6))
    assert torch.equal(far, farther)


def test_they_are_drawn_alike_each_time():
    columns = torch.randn(50, 3, dtype=torch.float64)
    once, again = (
        RandomFeatures.draw(columns, Settings(random_features=5)).append_to(columns)
        for _ in range(2)
    )
    assert torch.equal(once, again)


def test_they_fit_what_no_straight_line_can():
    """Two columns that speak for the class together and against it apart."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 2, generator=g, dtype=torch.float64)
    correct = torch.rand(4000, generator=g).double() < (2 * x[:, 0] * x[:, 1]).sigmoid()
    classes, ones = torch.zeros(4000, dtype=torch.int64), torch.ones(4000).double()
    squares = []
    for columns in (x, RandomFeatures.draw(x, Settings(random_features=60)).append_to(x)):
        rows = Rows(columns, classes, correct, ones)
        solution = solve(rows, torch.ones(columns.shape[1]).double())
        p = solution.logits(columns, classes).sigmoid()
        squares.append(float((p - correct.double()).square().mean()))
    assert squares[0] > 0.24 and squares[1] < 0.18


def test_their_argument_moves_by_the_gain_when_every_column_moves_by_one_deviation():
    columns = torch.randn(50, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    features = RandomFeatures.draw(columns, Settings(random_features=4000))
    assert float(features.weights.square().sum(0).mean().sqrt()) == pytest.approx(1.5, rel=0.02)
    assert float(features.biases.std()) == pytest.approx(1.0, rel=0.05)
