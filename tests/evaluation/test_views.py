"""Whether views are worth their forward passes."""

import numpy as np
import pytest
import torch

from rightly import Predictions
from rightly.calibrators.cascade import FULL_BAND
from rightly.evaluation import views
from rightly.evaluation.views import (
    ViewCost,
    ViewGain,
    ViewRanking,
    compute_view_costs,
    default_budgets,
    rank_views,
    recommend_budget,
    recommend_views,
    select_views,
    select_views_for_budget,
)
from tests.conftest import make


def make_telling(n=1200, seed=0, shift=None, names=()):
    """Three views: one knows something about the label, two repeat the image with noise."""
    g = torch.Generator().manual_seed(seed)
    predictions, labels = make(n, seed=seed)
    views = predictions.view_logits.clone()
    views[:, 1] = predictions.logits + 2 * torch.nn.functional.one_hot(labels, 10)
    views[:, 1] += torch.randn(n, 10, generator=g)
    marks = None if shift is None else np.full(n, shift)
    return Predictions(
        predictions.logits,
        views,
        view_names=["echo", "telling", "other"],
        shift=marks,
        shift_names=names,
    ), labels


def test_the_view_that_knows_something_comes_first():
    steps = []
    ranking = rank_views(*make_telling(), progress=lambda *step: steps.append(step))
    best = ranking.alone[0]
    assert best.views == ("telling",) and best.low > 0
    assert all(gain.low < best.low for gain in ranking.alone[1:])
    assert ranking.grown[0].views == ("telling",)
    assert [len(gain.views) for gain in ranking.grown] == [1, 2, 3]
    assert ranking.without.gain == 0
    assert ranking.every == ranking.grown[-1]
    assert ranking.find_smallest(0.9).views == ("telling",)
    assert ranking.find_smallest(99.0) is None
    assert [done for _, done, _ in steps] == list(range(6)) and steps[0][2] == 6
    assert steps[1][0].endswith("telling") and " + " in steps[-1][0]
    for gain in (*ranking.alone, *ranking.grown):
        assert gain.low <= gain.gain <= gain.high
        assert gain.gain == pytest.approx(ranking.without.brier - gain.brier)
        assert gain.per_pass == pytest.approx(gain.gain / len(gain.views))


def test_ranking_is_repeatable_and_keeps_to_the_most():
    once, again = (rank_views(*make_telling(n=300), most=1, seed=3) for _ in range(2))
    assert once == again and len(once.grown) == 1 and len(once.every.views) == 3


def test_selection_keeps_to_the_passes_and_to_what_gains():
    predictions, labels = make_telling()
    assert select_views(predictions, labels, 1) == ("telling",)
    assert select_views(predictions, labels, 9)[0] == "telling"
    useless, truth = make(n=600)
    assert 1 <= len(select_views(useless, truth, 3)) <= 3


def test_what_cannot_be_ranked_is_refused(sample):
    with pytest.raises(ValueError, match="extra_passes must be at least 1"):
        select_views(*sample, 0)
    with pytest.raises(ValueError, match="most must be at least 1"):
        rank_views(*sample, most=0)
    with pytest.raises(ValueError, match="have none"):
        rank_views(Predictions(sample[0].logits), sample[1])
    with pytest.raises(ValueError, match="every row is shifted"):
        rank_views(*make_telling(n=40, shift=1, names=("blur:1",)))


def test_a_budget_is_kept_and_more_passes_do_not_hurt():
    costs = compute_view_costs(*make_telling(800), budgets=[1.0, 2.0])
    assert [cost.budget for cost in costs] == [1.0, 2.0, 4.0]
    assert costs[0].passes == 1 and costs[0].band.is_empty
    assert costs[1].passes <= 2.1 and not costs[1].band.is_empty
    assert costs[-1].passes == 4 and costs[-1].band == FULL_BAND
    assert costs[0].brier > costs[1].brier > costs[-1].brier


def test_budgets_are_closer_where_passes_are_few():
    assert default_budgets(1) == [1.0, 1.1, 1.25, 1.5, 1.75]
    assert default_budgets(4) == [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0]


def test_a_small_budget_is_spent_on_the_view_that_knows_something():
    predictions, labels = make_telling(600)
    assert select_views_for_budget(predictions, labels, "rightly", 1.5)[0] == "telling"


def test_what_has_no_views_to_spend_on_is_refused(sample):
    with pytest.raises(ValueError, match="have none"):
        compute_view_costs(Predictions(sample[0].logits), sample[1])
    with pytest.raises(ValueError, match="one that uses views"):
        compute_view_costs(*sample, method="spline")


def rank(*gains, low=0.001):
    names = ("hflip", "zoom", "blur")
    grown = [
        ViewGain(names[: i + 1], 0.1, 0.3, gain, low, gain + 0.01) for i, gain in enumerate(gains)
    ]
    return ViewRanking(ViewGain((), 0.1, 0.3, 0.0, 0.0, 0.0), tuple(grown), tuple(grown), grown[-1])


def test_the_fewest_views_with_nearly_all_of_the_gain_are_taken():
    assert recommend_views(rank(0.005, 0.0092, 0.01)) == (
        "take hflip and zoom: 92 % of the gain of all views for 2 further passes per image "
        "instead of 3"
    )
    assert recommend_views(rank(0.01, 0.009, 0.008)) == (
        "take hflip: no less than the gain of all views for 1 further pass per image instead of 3"
    )
    assert recommend_views(rank(0.002, 0.005, 0.01)).startswith(
        "take hflip, zoom and blur: 1.00 points of the Brier score (95 % interval 0.10 to 2.00) for"
    )
    # The best of few beats what all views lose together.
    assert recommend_views(rank(0.01, 0.002, -0.01)).startswith("take hflip: no less than")


def test_gains_that_may_be_chance_are_not_recommended():
    assert recommend_views(rank(0.01, low=-0.001)) == (
        "take no view: the best set gains 1.00 points of the Brier score (95 % interval -0.10 to "
        "2.00), which may be chance; collect more images, or other views"
    )
    points = [ViewCost(2.0, 2.0, FULL_BAND, 0.1, 0.9, 0.02, 0.0, -0.01, 0.01)]
    assert recommend_budget(points).startswith("take no view: the best budget gains 0.00")


def test_the_fewest_passes_with_nearly_all_of_the_gain_are_taken():
    def cost(budget, gain):
        return ViewCost(budget, budget, FULL_BAND, 0.1, 0.9, 0.02, gain, gain / 2, 2 * gain)

    points = [cost(1.0, 0.0), cost(1.5, 0.0095), cost(2.0, 0.0099), cost(4.0, 0.01)]
    assert recommend_budget(points) == (
        "take --budget 1.5: 95 % of the gain of all views for 1.50 passes per image instead of 4.00"
    )
    assert recommend_budget([points[0], points[3]]).startswith("evaluate all views of every image")


def test_views_that_know_something_are_detected():
    test = views.test_views(*make_telling())
    assert test.is_detectable and test.shifted is None and test.unshifted.images == 1200
    one = test.unshifted
    assert one.gain == pytest.approx(one.without - one.with_views) and one.p < 0.001
    assert test.describe().startswith("views echo, telling, other gain on held-out rows (Brier 0.")


def test_views_of_noise_are_not_detected_in_any_order_of_rows():
    predictions, labels = make(n=600)
    noise = torch.randn(600, 3, 10, generator=torch.Generator().manual_seed(5))
    predictions = Predictions(predictions.logits, noise, view_names=["a", "b", "c"])
    test = views.test_views(predictions, labels)
    assert not test.is_detectable and test.unshifted.p > 0.05
    assert "gain nothing detectable on held-out rows (Brier 0." in test.describe()
    assert test.describe().endswith("fitted without them, one forward pass per sample")
    order = torch.randperm(600, generator=torch.Generator().manual_seed(1))
    again = views.test_views(predictions[order], labels[order])
    assert again.unshifted.gain == pytest.approx(test.unshifted.gain, abs=1e-9)


def test_shifted_rows_are_tested_by_image():
    predictions, labels = make_telling(n=400)
    shift = torch.arange(3).repeat_interleave(400)
    both = Predictions(
        predictions.logits.repeat(3, 1),
        predictions.view_logits.repeat(3, 1, 1),
        view_names=predictions.view_names,
        shift=shift,
        shift_names=("haze:1", "haze:2"),
    )
    test = views.test_views(both, labels.repeat(3))
    assert test.is_detectable and test.shifted.images == test.unshifted.images == 400
    assert "; on shifted rows Brier 0." in test.describe()


def test_methods_without_a_choice_of_views_are_refused(sample):
    for method in ("spline", "ca_views"):
        with pytest.raises(ValueError, match="uses views and does not need them"):
            views.test_views(*sample, method)
