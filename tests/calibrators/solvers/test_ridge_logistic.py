"""Ridge logistic regression and Platt scaling, against an independent minimiser."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from rightly.calibrators.solvers.ridge_logistic import (
    Affine,
    Rows,
    Solution,
    fit_platt,
    fit_ridge_logistic,
    platt_targets,
)


def solve(rows, penalty, class_penalty, class_count):
    weighed = fit_ridge_logistic(rows, penalty, class_penalty, class_count)
    score = weighed.logits(rows.design, rows.classes)
    return weighed.rescale(fit_platt(score, rows.correct, rows.weight))


@pytest.fixture
def rows():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(400, 3, generator=g, dtype=torch.float64) * 2 + 1
    classes = torch.randint(0, 4, (400,), generator=g)
    score = x[:, 0] - 0.5 * x[:, 1] + 0.5 * classes
    correct = torch.rand(400, generator=g, dtype=torch.float64) < score.sigmoid()
    weight = torch.rand(400, generator=g, dtype=torch.float64) + 0.5
    return Rows(x, classes, correct, weight)


def test_any_start_leads_to_the_same_solution(rows):
    penalty = torch.tensor([1.0, 5.0, 20.0]).double()
    cold = fit_ridge_logistic(rows, penalty, 3.0, 4)
    for start in (cold, Solution(cold.bias - 2, cold.weights + 1, cold.offsets.flip(0))):
        warm = fit_ridge_logistic(rows, penalty, 3.0, 4, start)
        torch.testing.assert_close(warm.bias, cold.bias, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(warm.weights, cold.weights, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(warm.offsets, cold.offsets, rtol=1e-5, atol=1e-5)


def test_a_solution_goes_on_with_further_columns(rows):
    short = fit_ridge_logistic(rows, torch.ones(3).double(), 3.0, 4)
    longer = short.extend(torch.ones(5).double())
    design = torch.cat([rows.design, rows.design[:, :2]], 1)
    expected = short.logits(rows.design, rows.classes)
    torch.testing.assert_close(longer.logits(design, rows.classes), expected)


def test_it_is_solved_as_by_an_independent_minimiser(rows):
    penalty, class_penalty = np.array([1.0, 5.0, 20.0]), 3.0
    solution = solve(rows, torch.tensor(penalty), class_penalty, 4)
    weight = rows.weight.numpy()
    share = weight / weight.sum()
    x = rows.design.numpy()
    centre = share @ x
    z = (x - centre) / np.sqrt(share @ (x - centre) ** 2)
    one_hot, targets = np.eye(4)[rows.classes], platt_targets(rows.correct).numpy()

    def loss(p):
        t = p[0] + z @ p[1:4] + one_hot @ p[4:]
        squares = penalty @ p[1:4] ** 2 + class_penalty * (p[4:] ** 2).sum()
        return weight @ (np.logaddexp(0, t) - targets * t) + squares / 2

    p = minimize(loss, np.zeros(8), options={"gtol": 1e-8}).x
    score = z @ p[1:4] + one_hot @ p[4:]

    def platt_loss(q):
        t = q[0] + q[1] * score
        return weight @ (np.logaddexp(0, t) - targets * t)

    q = minimize(platt_loss, [p[0], 1.0], options={"gtol": 1e-8}).x
    expected = q[0] + q[1] * score
    logits = solution.logits(rows.design, rows.classes)
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_evidence_that_separates_right_from_wrong_gives_finite_weights():
    x = torch.linspace(-1, 1, 50, dtype=torch.float64)[:, None]
    rows = Rows(x, torch.zeros(50, dtype=torch.int64), x[:, 0] > 0, torch.ones(50).double())
    solution = solve(rows, torch.zeros(1).double(), 1.0, 1)
    p = solution.logits(x, rows.classes).sigmoid()
    assert torch.isfinite(solution.weights).all() and (p.diff() >= 0).all()


def test_a_column_that_never_changes_does_no_harm(rows):
    constant = torch.cat([rows.design, torch.full((400, 1), 7.0).double()], 1)
    widened = Rows(constant, rows.classes, rows.correct, rows.weight)
    penalty = torch.ones(4).double()
    narrow = solve(rows, penalty[:3], 1.0, 4).logits(rows.design, rows.classes)
    wide = solve(widened, penalty, 1.0, 4).logits(constant, rows.classes)
    torch.testing.assert_close(narrow, wide)


def test_platt_targets_count_one_more_of_each():
    correct = torch.tensor([True, True, True, False])
    rows = Rows(torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64), correct, torch.ones(4))
    np.testing.assert_allclose(platt_targets(rows.correct), [4 / 5, 4 / 5, 4 / 5, 1 / 3])


def test_a_score_that_ranks_the_wrong_way_gets_slope_zero():
    score = torch.linspace(-1, 1, 100).double()
    line = fit_platt(score, score < 0.2, torch.ones(100).double())
    assert float(line.slope) == 0
    assert float(line(score)[0].sigmoid()) == pytest.approx(0.6, abs=0.02)


def test_samples_without_weight_do_not_count(rows):
    score, half = rows.design[:, 0], torch.arange(400) < 200
    line = fit_platt(score, rows.correct, torch.where(half, rows.weight, 0.0))
    alone = fit_platt(score[half], rows.correct[half], rows.weight[half])
    torch.testing.assert_close(torch.stack(line), torch.stack(alone))


def test_rescaling_a_solution_rescales_its_logits(rows):
    solution = fit_ridge_logistic(rows, torch.ones(3).double(), 1.0, 4)
    affine = Affine(torch.tensor(2.0).double(), torch.tensor(-0.5).double())
    logits = solution.logits(rows.design, rows.classes)
    torch.testing.assert_close(
        solution.rescale(affine).logits(rows.design, rows.classes), 2 * logits - 0.5
    )
