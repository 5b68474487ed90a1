"""What to take, in a sentence."""

from rightly.calibrators.cascade import FULL_BAND
from rightly.evaluation.view_cost import ViewCost
from rightly.evaluation.view_selection import ViewGain, ViewRanking
from rightly.reporting.recommendations import recommend_budget, recommend_views


def rank(*gains, low=0.001):
    names = ("hflip", "zoom", "blur")
    grown = [
        ViewGain(names[: i + 1], 0.1, 0.3, gain, low, gain + 0.01) for i, gain in enumerate(gains)
    ]
    return ViewRanking(ViewGain((), 0.1, 0.3, 0.0, 0.0, 0.0), tuple(grown), tuple(grown), grown[-1])


def test_the_fewest_views_with_nearly_all_of_the_gain_are_taken():
    assert recommend_views(rank(0.005, 0.0092, 0.01)) == (
        "take hflip and zoom: 92 % of the gain of all views for 2 further passes an image "
        "instead of 3"
    )
    assert recommend_views(rank(0.01, 0.009, 0.008)) == (
        "take hflip: no less than the gain of all views for 1 further pass an image instead of 3"
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
    assert recommend_budget(points).startswith("look at no view: the best budget gains 0.00")


def test_the_fewest_passes_with_nearly_all_of_the_gain_are_taken():
    def cost(budget, gain):
        return ViewCost(budget, budget, FULL_BAND, 0.1, 0.9, 0.02, gain, gain / 2, 2 * gain)

    points = [cost(1.0, 0.0), cost(1.5, 0.0095), cost(2.0, 0.0099), cost(4.0, 0.01)]
    assert recommend_budget(points) == (
        "take --budget 1.5: 95 % of the gain of all views for 1.50 passes an image instead of 4.00"
    )
    assert recommend_budget([points[0], points[3]]).startswith("look at all views of every image")
