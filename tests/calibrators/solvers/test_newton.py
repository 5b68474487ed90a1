"""Newton's method: roots in a bracket, with and without a slope, and convex minima."""

import math

import numpy as np
import pytest
import torch

from rightly.calibrators.solvers.newton import find_root, minimise

RISING = {
    "line": (lambda x: 2 * x - 3, lambda x: 2.0, 1.5),
    "logarithm": (lambda x: math.log(x / 0.02), lambda x: 1 / x, 0.02),
    "cube": (lambda x: (x - 1.3) ** 3, lambda x: 3 * (x - 1.3) ** 2, 1.3),
    "saturated": (lambda x: math.tanh(5 * (x - 7)), lambda x: 5 / math.cosh(5 * (x - 7)) ** 2, 7.0),
}


@pytest.mark.parametrize("name", RISING)
@pytest.mark.parametrize("start", [1e-3, 1.0, 90.0])
@pytest.mark.parametrize("has_slope", [True, False])
def test_a_root_is_found_from_any_start(name, start, has_slope):
    value, slope, root = RISING[name]

    def function(x):
        return value(x), slope(x) if has_slope and x < 50 else None

    found = find_root(function, start, (1e-3, 1e2), 1e-6, first_step=0.1)
    assert found == pytest.approx(root, rel=1e-5)


def test_a_root_nearby_takes_three_evaluations_without_a_slope():
    evaluated = []

    def function(x):
        evaluated.append(x)
        u = math.log(x) - 0.013
        return math.sinh(3 * u) + u**2, None

    found = find_root(function, 1.0, (0.5, 2.0), 0.004, first_step=0.01)
    assert math.log(found) == pytest.approx(0.013, abs=1e-7)
    assert len(evaluated) == 3


@pytest.mark.parametrize(
    ("value", "end"),
    [
        (lambda x: -1.0, 2.0),  # below 0 everywhere
        (lambda x: x, 0.5),  # above 0 everywhere
        (lambda x: -math.log(x) - 1, 2.0),  # falls: no minimum of what it is the slope of
        (lambda x: math.copysign(1.0, x - 1.1) + x / 10, 1.1),  # jumps over 0
        (lambda x: 0.0, 1.0),
    ],
)
def test_without_a_root_the_nearest_end_of_the_bracket_is_found(value, end):
    found = find_root(lambda x: (value(x), None), 1.0, (0.5, 2.0), 1e-3, first_step=0.01)
    assert found == pytest.approx(end)


def test_a_slope_of_zero_halves_the_bracket():
    found = find_root(lambda x: (float(np.sign(x - 0.3)) or 1e-9, 0.0), 1.0, (0.1, 10.0), 1e-6)
    assert found == pytest.approx(0.3)


def solve_by_newton(centre, evaluate=None, solve=None):
    """Minimises sum(log cosh(x - centre)), from where a full step overshoots."""

    def plain(x):
        return float((x - centre).cosh().log().sum()), (x - centre).tanh()

    def step(x, slope):
        return slope * (x - centre).cosh().square()

    start = torch.zeros_like(centre)
    return minimise(evaluate or plain, solve or step, start, 1e-12)


def test_a_step_that_raises_the_loss_is_halved():
    centre = torch.tensor([1.5, -1.2, 0.3], dtype=torch.float64)
    torch.testing.assert_close(solve_by_newton(centre), centre, atol=1e-6, rtol=0)


def test_it_stays_where_equations_have_no_solution_or_no_step_lowers_the_loss():
    centre = torch.ones(2, dtype=torch.float64)
    assert not solve_by_newton(centre, solve=lambda x, _: None).any()
    uphill = solve_by_newton(centre, solve=lambda x, slope: -slope)
    assert not uphill.any()
    only_at_start = solve_by_newton(
        centre, evaluate=lambda x: (math.nan if x.any() else 1.0, x + 1)
    )
    assert not only_at_start.any()
