"""`rightly views`: which views pay for their forward passes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import (
    OUT,
    print_line,
    print_sentence,
    write_json,
)
from rightly.cli.options import (
    Cal,
    Import,
    Json,
    LabelFiles,
    Plot,
    Probabilities,
    Seed,
    Views,
    check_outputs,
    check_plot,
    load_sets,
    split_numbers,
)
from rightly.progress import track

if TYPE_CHECKING:
    from rightly.evaluation.views import ViewGain
    from rightly.predictions import Predictions
    from rightly.tensor_shapes import Labels

EXAMPLE = "rightly views cal.npz --most 3"
FUNCTIONS = ("rightly.evaluation.views:rank_views", "rightly.evaluation.views:compute_view_costs")


def run(
    cal: Cal,
    modules: Import = None,
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest set of views to try.", show_default="all"),
    ] = None,
    seed: Seed = 0,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="N,N|all",
            help="Mean forward passes per image: cost and gain of each budget, not of each view.",
            show_default="none",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Method that uses the views, with --budgets.")
    ] = "correctness_logistic",
    plot: Plot = None,
    json: Json = None,
) -> None:
    """Rank views by what their forward passes gain."""
    check_outputs([plot, json], [cal])
    if plot and budgets is None:
        raise ValueError("plot draws what budgets cost and gain: add --budgets all")
    check_plot(plot, None, ["budget"])
    [(predictions, truth)] = load_sets([cal], labels, probabilities, views)
    if budgets is None:
        _rank(predictions, truth, most, seed, json)
    else:
        passes = [] if budgets == "all" else split_numbers(budgets, "budgets")
        _price(predictions, truth, method, passes, plot, json)


def _rank(
    predictions: "Predictions", labels: "Labels", most: int | None, seed: int, json: Path | None
) -> None:
    from rightly.evaluation.views import rank_views, recommend_views
    from rightly.reporting.terminal import render_views, show

    ranking = rank_views(predictions, labels, most=most, seed=seed, progress=True)
    show(OUT, render_views, ranking)
    sentence = recommend_views(ranking)
    print_sentence(sentence)
    if json:
        content = {
            "without": _make_row(ranking.without),
            "alone": [_make_row(gain) for gain in ranking.alone],
            "grown": [_make_row(gain) for gain in ranking.grown],
            "recommendation": sentence,
        }
        write_json(json, "rightly-view-ranking", content)


def _make_row(gain: "ViewGain") -> dict[str, Any]:
    return {**asdict(gain), "passes": len(gain.views), "per_pass": gain.per_pass}


def _price(
    predictions: "Predictions",
    labels: "Labels",
    method: str,
    budgets: list[float],
    plot: Path | None,
    json: Path | None,
) -> None:
    from rightly.evaluation.views import compute_view_costs, recommend_budget
    from rightly.reporting.terminal import render_view_costs, show

    with track(True, f"fitting {method} on halves of {len(predictions)} predictions"):
        points = compute_view_costs(predictions, labels, method, budgets)
    print_line(
        f"{method} over {len(predictions.view_names)} views "
        f"({', '.join(predictions.view_names)}), measured on samples not fitted on"
    )
    show(OUT, render_view_costs, points)
    sentence = recommend_budget(points)
    if json:
        rows = [
            {**asdict(point), "band": None if point.band.is_empty else list(point.band)}
            for point in points
        ]
        content = {
            "method": method,
            "views": predictions.view_names,
            "points": rows,
            "recommendation": sentence,
        }
        write_json(json, "rightly-view-cost", content)
    if plot:
        from rightly.reporting.figures import draw_view_costs, save

        save(draw_view_costs(points), plot)
        print_line(f"the figure is in {plot}")
    print_sentence(sentence)
