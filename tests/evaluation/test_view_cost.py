"""What forward passes buy."""

import pytest

from rightly import Predictions
from rightly.calibrators.cascade import FULL_BAND
from rightly.evaluation.view_cost import (
    compute_view_costs,
    default_budgets,
    select_views_for_budget,
)
from tests.evaluation.test_view_selection import make_telling


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
    with pytest.raises(ValueError, match="one that looks at views"):
        compute_view_costs(*sample, method="spline")
