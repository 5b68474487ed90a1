"""L-BFGS: minima within bounds, monitored searches, and searches that end too early."""

import pytest
import torch

from rightly.calibrators.solvers import lbfgs

CENTRE = torch.tensor([1.0, -2.0, 3.0]).double()


def squares(x):
    return ((x - CENTRE) ** 2 * torch.tensor([1.0, 10.0, 100.0])).sum()


@torch.no_grad()
def test_gradients_are_autograds_also_where_they_are_switched_off():
    answer = lbfgs.differentiate(squares)(torch.zeros(3).double())
    torch.testing.assert_close(answer, torch.tensor([941.0, -2, 40, -600]).double())


def test_minimum_is_found_and_bounds_are_kept():
    found = lbfgs.minimise(lbfgs.differentiate(squares), torch.zeros(3).double())
    torch.testing.assert_close(found.x, CENTRE, atol=1e-6, rtol=0)
    assert found.is_converged and found.value == pytest.approx(0, abs=1e-9)
    bounds = [(None, None), (-1.0, None), (0.0, 2.0)]
    found = lbfgs.minimise(lbfgs.differentiate(squares), torch.zeros(3).double(), bounds)
    torch.testing.assert_close(found.x, torch.tensor([1.0, -1, 2]).double(), atol=1e-6, rtol=0)


def test_monitor_sees_each_iteration_and_ends_the_search():
    seen = []

    def stop_at_second(x):
        seen.append(x)
        return len(seen) == 2

    start = torch.zeros(3).double()
    found = lbfgs.minimise(lbfgs.differentiate(squares), start, monitor=stop_at_second)
    assert len(seen) == found.iterations == 2
    assert not torch.equal(seen[0], seen[1])
    assert float((found.x - CENTRE).norm()) > 1e-3


def test_a_search_that_reaches_its_limit_has_not_converged():
    found = lbfgs.minimise(lbfgs.differentiate(squares), torch.zeros(3).double(), max_iterations=1)
    assert found.iterations == 1 and not found.is_converged
