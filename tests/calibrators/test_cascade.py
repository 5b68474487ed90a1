"""Budgets: views are looked at only where they pay."""

from functools import cache

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions, calibrator, load_calibrator
from rightly.calibrators.cascade import (
    EMPTY_BAND,
    FULL_BAND,
    Band,
    Cascade,
    HeldOut,
    select_band,
)
from rightly.evaluation.views import compute_view_costs, default_budgets
from tests.conftest import make


def informative(n: int = 1200, seed: int = 0):
    """Two views that agree with the prediction exactly where it is right."""
    g = torch.Generator().manual_seed(seed)
    predictions, labels = make(n=n, m=2, seed=seed)
    right = predictions.classes == labels
    views = 0.3 * torch.randn(n, 2, 10, generator=g)
    views[right] += 4 * torch.nn.functional.one_hot(predictions.classes[right], 10)[:, None]
    return Predictions(predictions.logits, views, view_names=["a", "b"]), labels


@pytest.fixture(scope="module")
def fit():
    """`ca_views` with a budget, fitted once to the data that tests share."""
    return cache(lambda budget: calibrator("ca_views", budget=budget).fit(*informative()))


@pytest.mark.parametrize("budget", [1.0, 1.2, 1.5, 2.5])
def test_the_mean_number_of_passes_keeps_to_the_budget(budget, fit):
    predictions, fitted = informative()[0], fit(budget)
    passes = 1 + 2 * fitted.needs_views(predictions).double().mean()
    assert passes <= budget + 0.05  # fitted on halves, counted with calibrators fitted on all


def test_outside_the_band_nothing_depends_on_the_views(fit):
    predictions, fitted = informative()[0], fit(1.5)
    asked = fitted.needs_views(predictions)
    assert 0 < asked.sum() < len(asked)
    other = Predictions(predictions.logits, predictions.view_logits.flip(0), view_names=["a", "b"])
    same = fitted.confidence(other) == fitted.confidence(predictions)
    assert same[~asked].all() and not same[asked].all()


def test_a_method_that_can_do_without_views_needs_them_for_a_budget():
    predictions, labels = make(n=300)
    fitted = calibrator("rightly", budget=1.5).fit(predictions, labels)
    assert fitted.view_names == predictions.view_names
    with pytest.raises(ValueError, match="view_logits"):
        fitted.confidence(Predictions(predictions.logits))


def test_a_larger_budget_ranks_better_where_views_tell(fit):
    test, truth = informative(seed=1)
    correct = test.correct(truth)
    budgets = (1.0, 1.5, 3.0)
    scores = [rightly.metrics.auroc(fit(budget).confidence(test), correct) for budget in budgets]
    assert scores[0] < scores[1] < scores[2]


def test_a_cascade_is_saved_and_loaded(fit, tmp_path):
    predictions, fitted = informative()[0], fit(1.5)
    fitted.save(tmp_path / "c.safetensors")
    loaded = load_calibrator(tmp_path / "c.safetensors")
    assert torch.equal(loaded.confidence(predictions), fitted.confidence(predictions))
    assert torch.equal(loaded.probabilities(predictions), fitted.probabilities(predictions))
    assert isinstance(loaded, Cascade) and loaded.arguments["budget"] == 1.5
    again = loaded.needs_views(predictions)
    assert torch.equal(again, fitted.needs_views(predictions))


def test_outputs_computed_together_agree():
    predictions, labels = informative()
    fitted = calibrator("correctness_network", budget=1.5).fit(predictions, labels)
    outputs = fitted.compute(predictions)
    assert torch.equal(outputs.classes, predictions.classes)
    assert torch.allclose(outputs.confidence, fitted.confidence(predictions))
    assert outputs.temperature is None  # the second method has none of its own
    assert torch.allclose(outputs.probabilities, fitted.probabilities(predictions))
    top = outputs.probabilities.gather(-1, predictions.classes[:, None]).squeeze(-1)
    # Below 1 / c no probabilities keep the class: they are uniform there.
    assert torch.allclose(top, outputs.confidence.clamp_min(0.1), atol=1e-6)


def test_the_band_is_where_most_is_gained():
    places = np.linspace(0.1, 1, 100)
    correct = np.ones(100, dtype=bool)
    second = places.copy()
    second[40:60] = 1.0  # knows better there, and nowhere else
    low, high = select_band(HeldOut(places, second, correct), allowed=0.2)
    assert (low, high) == (places[40], places[59])
    assert select_band(HeldOut(places, places, correct), allowed=0.2) == EMPTY_BAND
    assert select_band(HeldOut(places, second, correct), allowed=0.0) == EMPTY_BAND


def test_samples_of_one_confidence_are_asked_together():
    places = np.repeat([0.2, 0.6, 0.9], 10)
    second = np.where(places == 0.6, 1.0, places)
    judged = HeldOut(places, second, np.ones(30, dtype=bool))
    assert select_band(judged, allowed=0.4) == (0.6, 0.6)
    assert select_band(judged, allowed=0.2) == EMPTY_BAND  # a third would have to be asked


def test_the_curve_gains_with_the_budget_and_says_what_it_takes():
    predictions, labels = informative()
    points = compute_view_costs(predictions, labels, "ca_views")
    assert [point.budget for point in points] == [*default_budgets(2), 3.0]
    assert points[0].passes == 1 and points[0].band == EMPTY_BAND
    assert points[-1].passes == 3 and points[-1].band == FULL_BAND
    assert all(point.passes <= point.budget + 0.1 for point in points)
    assert points[-1].brier < points[0].brier - 0.02 and points[-1].auroc > points[0].auroc


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("temperature_scaling", {"budget": 1.5}, "budget is for methods that use views"),
        ("ca_views", {"budget": 0.5}, "budget must be at least 1"),
        ("ca_views", {"budget": 1.5, "first": "ce_views"}, "first must be a method that needs no"),
    ],
)
def test_impossible_budgets_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        calibrator(name, **arguments)


def test_a_curve_needs_views():
    predictions, labels = make(m=1)
    with pytest.raises(ValueError, match="must have views to spend a budget on"):
        compute_view_costs(Predictions(predictions.logits), labels)
    with pytest.raises(ValueError, match="method must be one that uses views"):
        compute_view_costs(predictions, labels, "spline")


def test_a_method_that_can_do_without_views_decides_early_by_itself():
    predictions, labels = informative()
    fitted = calibrator("rightly", budget=1.5).fit(predictions, labels)
    assert fitted.arguments["first"] == "correctness_logistic"
    without = calibrator("rightly").fit(predictions.without_views(), labels)
    early = ~fitted.needs_views(predictions)
    alone = without.confidence(predictions.without_views())
    assert torch.equal(fitted.confidence(predictions)[early], alone[early])


def test_a_budget_chooses_the_view_that_tells():
    predictions, labels = informative()
    noise = torch.randn(len(predictions), 2, 10, generator=torch.Generator().manual_seed(5))
    views = torch.cat([noise, predictions.view_logits[:, :1]], 1)
    more = Predictions(predictions.logits, views, view_names=["noise", "hiss", "tells"])
    fitted = rightly.fit(more, labels, "rightly", budget=1.4)
    assert fitted.view_names == ("tells",)
    assert fitted.record["passes"] <= 1.45
    every = rightly.fit(more, labels, "rightly", budget=1.4, select_views=False)
    assert every.view_names == more.view_names


def test_a_band_is_empty_in_one_way():
    assert EMPTY_BAND.is_empty and not FULL_BAND.is_empty
    assert not Band(0.6, 0.6).is_empty  # both ends belong to it


def test_with_an_empty_band_no_sample_needs_views(fit):
    predictions, fitted = informative()[0], fit(1.0)
    assert Band(*fitted.band.tolist()) == EMPTY_BAND
    assert not fitted.needs_views(predictions).any()
