"""`rightly views`: which views pay for their forward passes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rightly.cli.console import OUT, make_table, print_line, print_table, show_status, write_json
from rightly.cli.inputs import BootstrapSeed, Cal, Json, read_data_set

if TYPE_CHECKING:
    from rightly.evaluation.view_selection import Gain

EXAMPLE = "rightly views cal.npz --most 3"


def run(
    cal: Cal,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="Try sets of at most this many views.", show_default="all"),
    ] = None,
    bootstrap_seed: BootstrapSeed = 0,
    json: Json = None,
) -> None:
    """Rank views by what their forward passes gain."""
    from rightly.evaluation.view_selection import rank_views

    predictions, labels = read_data_set(cal)
    if most is not None and most < 1:
        raise ValueError(f"--most must be at least 1, got {most}")
    with show_status("ranking views") as update:
        ranking = rank_views(
            predictions,
            labels,
            most=most,
            seed=bootstrap_seed,
            announce=lambda name: update(f"ranking views: {name}"),
        )
    print_line(
        f"Brier score of the confidence without views: {100 * ranking.without.brier:.3f}, "
        f"log loss {ranking.without.log_loss:.4f}; on images left out of the fit.\n"
    )
    print_table(_make_table("one view", ranking.alone))
    OUT.print("\nSets that grow by the view that gains most:")
    print_table(_make_table("views", ranking.grown, is_grown=True))
    OUT.print("\nbrier and gains in %, gains over no views; intervals hold 95 %.", style="dim")
    if json:
        content = {
            "without": _as_row(ranking.without),
            "alone": [_as_row(gain) for gain in ranking.alone],
            "grown": [_as_row(gain) for gain in ranking.grown],
        }
        write_json(json, "rightly-view-ranking", content)


def _as_row(gain: "Gain") -> dict[str, Any]:
    return {**asdict(gain), "passes": len(gain.views), "per_pass": gain.per_pass}


def _make_table(title: str, gains: "Sequence[Gain]", *, is_grown: bool = False) -> Table:
    headings = ("passes", "brier ↓", "log loss ↓", "gain ↑", "interval", "a pass ↑")
    table = make_table(title, *headings)
    for gain in gains:
        name = f"+ {gain.views[-1]}" if is_grown and len(gain.views) > 1 else gain.views[-1]
        table.add_row(
            name,
            str(len(gain.views)),
            f"{100 * gain.brier:.3f}",
            f"{gain.log_loss:.4f}",
            f"{100 * gain.gain:.3f}",
            f"{100 * gain.low:.3f} .. {100 * gain.high:.3f}",
            f"{100 * gain.per_pass:.3f}",
        )
    return table
