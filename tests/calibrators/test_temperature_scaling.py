"""One temperature: against brute force, closed forms and known factors."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

import rightly
from rightly import Predictions, losses
from rightly.calibrators.solvers import temperature
from rightly.calibrators.solvers.temperature import fit_inverse_temperature, nll_inverse_temperature
from tests.calibrators.samples import draw_labels, draw_logits
from tests.conftest import make


@pytest.mark.parametrize("factor", [0.3, 2.0, 3.0, 1e4])
def test_it_undoes_a_known_factor(factor):
    logits = draw_logits(20_000, 8)
    inverse = nll_inverse_temperature(logits * factor, draw_labels(logits))
    assert 1 / inverse == pytest.approx(factor, rel=0.03)


def test_it_is_exactly_proportional_to_the_scale_of_logits():
    logits, labels = draw_logits(2000, 5), draw_labels(draw_logits(2000, 5))
    one, ten = (nll_inverse_temperature(logits * s, labels) for s in (1, 10))
    assert one == pytest.approx(10 * ten, rel=1e-9)


@pytest.mark.parametrize("n", [50, 3000, 20_000])
def test_the_slope_vanishes_at_the_optimum(n):
    logits = draw_logits(n, 6)
    labels = draw_labels(logits / 1.7)
    found = nll_inverse_temperature(logits, labels)
    b = torch.tensor(found, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.cross_entropy(logits * b, labels).backward()
    assert abs(float(b.grad)) < 1e-8


def test_a_brute_force_search_finds_the_same():
    predictions, labels = make(n=1000)
    fitted = rightly.calibrator("temperature_scaling").fit(predictions, labels)
    logits = predictions.logits.double()

    def nll(t):
        return float(torch.nn.functional.cross_entropy(logits / t, labels))

    best = minimize_scalar(nll, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-9}).x
    assert float(fitted.temperature(predictions)[0]) == pytest.approx(best, abs=1e-6)


def test_single_precision_is_exact_to_a_millionth():
    logits = draw_logits(20_000, 100)
    labels = draw_labels(logits / 1.5)
    single, double = (1 / nll_inverse_temperature(z, labels) for z in (logits.float(), logits))
    assert single == pytest.approx(double, abs=1e-6)


def test_a_constant_added_to_a_row_changes_nothing():
    logits = draw_logits(500, 4)
    labels = draw_labels(logits)
    moved = logits + torch.linspace(-9, 9, 500).double()[:, None]
    one, two = (nll_inverse_temperature(z, labels) for z in (logits, moved))
    assert one == pytest.approx(two, rel=1e-9)


def test_worthless_logits_end_at_the_bound_not_in_a_crash():
    logits = draw_logits(300, 4)
    labels = logits.argmin(-1)
    with pytest.warns(UserWarning, match="predicted wrong"):
        fitted = rightly.calibrator("temperature_scaling").fit(Predictions(logits), labels)
    assert float(fitted.confidence(Predictions(logits)).max()) < 0.26


def test_constant_rows_are_left_alone():
    logits = torch.ones(20, 3)
    labels = torch.arange(20) % 3
    fitted = rightly.calibrator("temperature_scaling").fit(Predictions(logits), labels)
    torch.testing.assert_close(
        fitted.confidence(Predictions(logits)), torch.full((20,), 1 / 3).double()
    )


@pytest.mark.parametrize(
    "name", ["squared_error", "correctness_aware", "balanced_correctness_aware"]
)
@pytest.mark.parametrize("c", [10, 100])
def test_one_temperature_under_any_loss_is_found_exactly(name, c):
    predictions, labels = make(n=800, c=c)
    logits = predictions.logits.double()

    def value(u):
        return float(losses.LOSSES[name](logits * np.exp(u), labels))

    grid = np.linspace(-3, 3, 241)
    near = grid[np.argmin([value(u) for u in grid])]
    best = minimize_scalar(
        value, bounds=(near - 0.05, near + 0.05), method="bounded", options={"xatol": 1e-9}
    ).x
    found = np.log(fit_inverse_temperature(logits, labels, losses.LOSSES[name]))
    assert found == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("name", ["squared_error", "balanced_correctness_aware"])
def test_the_slope_of_other_losses_vanishes_too_in_single_precision(name):
    predictions, labels = make(n=9000, c=30)
    found = np.log(fit_inverse_temperature(predictions.logits, labels, losses.LOSSES[name]))

    def slope(x):
        u = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        losses.LOSSES[name](predictions.logits.double() * u.exp(), labels).backward()
        return float(u.grad)

    assert slope(found - 1e-6) < 0 < slope(found + 1e-6)


def test_a_fit_that_never_looks_at_values_inside_its_loop_finds_the_same(monkeypatch):
    """As on a GPU, where looking means waiting."""
    predictions, labels = make(n=9000, c=20)
    fitted = rightly.calibrator("temperature_scaling").fit(predictions, labels)
    expected = fitted.probabilities(predictions)
    monkeypatch.setattr(temperature, "is_unsynchronised", lambda _: True)
    again = rightly.calibrator("temperature_scaling").fit(predictions, labels)
    torch.testing.assert_close(again.inverse, fitted.inverse, rtol=1e-9, atol=0)
    torch.testing.assert_close(again.probabilities(predictions), expected)
