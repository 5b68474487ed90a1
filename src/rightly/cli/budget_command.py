"""`rightly budget`: what looking at views costs and what it gains."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rightly.cli.console import OUT, print_line, print_sentence, show_status, write_json
from rightly.cli.inputs import (
    Cal,
    Json,
    LabelFiles,
    Probabilities,
    Views,
    read_data_sets,
    split_numbers,
)

EXAMPLE = "rightly budget cal.npz --budgets 1.5,2 --plot budget.pdf"


def run(
    cal: Cal,
    method: Annotated[str, typer.Option(help="The method that looks at the views.")] = "rightly",
    views: Views = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="N,N",
            help="Mean forward passes per image, joined by commas.",
            show_default="from 1 to all views",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curve: .pdf, .svg or .png.")
    ] = None,
    json: Json = None,
) -> None:
    """Show what forward passes over views cost and gain."""
    from rightly.evaluation.views import compute_view_costs, recommend_budget
    from rightly.reporting.terminal import render_view_costs, show

    [(predictions, truth)] = read_data_sets([cal], labels, probabilities, views)
    passes = split_numbers(budgets, "--budgets") if budgets else ()
    with show_status(f"fitting {method} on halves of {len(predictions)} predictions"):
        points = compute_view_costs(predictions, truth, method, passes)
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
        print_line(f"the curve is in {plot}")
    print_sentence(sentence)
