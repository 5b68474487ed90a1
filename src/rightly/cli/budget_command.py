"""`rightly budget`: what looking at views costs and what it gains."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from rightly.cli.console import (
    OUT,
    make_table,
    print_line,
    print_table,
    show_status,
    write_json,
)
from rightly.cli.inputs import Cal, Json, Views, read_data_set, split_names, split_numbers

if TYPE_CHECKING:
    from rightly.evaluation.view_cost import Point

EXAMPLE = "rightly budget cal.npz --budgets 1.5,2 --plot budget.pdf"


def run(
    cal: Cal,
    method: Annotated[str, typer.Option(help="The method that looks at the views.")] = "rightly",
    views: Views = None,
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
    from rightly.cli._legacy_plotting import plot_budget
    from rightly.evaluation.view_cost import cost_curve

    predictions, labels = read_data_set(cal, split_names(views))
    passes = split_numbers(budgets, "--budgets") if budgets else ()
    with show_status(f"fitting {method} on halves of {len(predictions)} predictions"):
        points = cost_curve(predictions, labels, method, passes)
    print_line(
        f"{method} over {len(predictions.view_names)} views "
        f"({', '.join(predictions.view_names)}), measured on samples not fitted on"
    )
    print_table(_make_table(points))
    OUT.print("passes: mean forward passes per image. All metrics in %.", style="dim")
    if json:
        content = {"method": method, "views": predictions.view_names}
        write_json(json, "rightly-view-cost", {**content, "points": [asdict(p) for p in points]})
    if plot:
        plot_budget(points, plot)
        print_line(f"the curve is in {plot}")


def _make_table(points: "list[Point]") -> Table:
    headings = ("budget", "passes", "views looked at where", "brier ↓", "auroc ↑", "ece ↓")
    table = make_table(*headings, text=0)
    for point in points:
        band = "never" if point.band is None else f"{point.band[0]:.3f} to {point.band[1]:.3f}"
        band = "everywhere" if point.band == (0.0, 1.0) else band
        values = [f"{100 * value:.2f}" for value in (point.brier, point.auroc, point.ece)]
        table.add_row(f"{point.budget:g}", f"{point.passes:.2f}", band, *values)
    return table
