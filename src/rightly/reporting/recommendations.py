"""One sentence on the views to take, or how often to look at them: what it gains for how much."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rightly.evaluation.view_cost import ViewCost
    from rightly.evaluation.view_selection import ViewGain, ViewRanking

NEARLY_ALL = 0.9  # of the gain of all views


def recommend_views(ranking: "ViewRanking") -> str:
    """The smallest set of views with nearly all of the gain, unless that may be chance."""
    every = ranking.every
    best = max(ranking.grown, key=lambda one: one.gain)
    chosen = (ranking.find_smallest(NEARLY_ALL) if every.gain > 0 else None) or best
    if chosen.low <= 0:
        return f"take no view: the best set gains {_describe_noise(chosen)}"
    *others, last = chosen.views
    named = f"{', '.join(others)} and {last}" if others else last
    passes = f"{len(chosen.views)} further pass{'es' if others else ''} an image"
    if len(chosen.views) == len(every.views):
        return f"take {named}: {_format(chosen)} for {passes}"
    share = _describe_share(chosen, every)
    return f"take {named}: {share} for {passes} instead of {len(every.views)}"


def recommend_budget(costs: "Sequence[ViewCost]") -> str:
    """The fewest passes with nearly all of the gain, unless that may be chance."""
    every = costs[-1]
    best = max(costs, key=lambda one: one.gain)
    if best.low <= 0:
        return f"look at no view: the best budget gains {_describe_noise(best)}"
    enough = [one for one in costs if one.gain >= NEARLY_ALL * every.gain and one.low > 0]
    chosen = min(enough or [best], key=lambda one: one.passes)
    passes = f"{chosen.passes:.2f} passes an image"
    if chosen is every:
        return f"look at all views of every image: {_format(chosen)} for {passes}"
    share = _describe_share(chosen, every)
    return f"take --budget {chosen.budget:g}: {share} for {passes} instead of {every.passes:.2f}"


def _describe_share(chosen: "ViewGain | ViewCost", every: "ViewGain | ViewCost") -> str:
    if chosen.gain >= every.gain:
        return "no less than the gain of all views"
    return f"{chosen.gain / every.gain:.0%} of the gain of all views".replace("%", " %")


def _describe_noise(best: "ViewGain | ViewCost") -> str:
    return f"{_format(best)}, which may be chance; collect more images, or other views"


def _format(gained: "ViewGain | ViewCost") -> str:
    interval = f"95 % interval {100 * gained.low:.2f} to {100 * gained.high:.2f}"
    return f"{100 * gained.gain:.2f} points of the Brier score ({interval})"
