"""`rightly views`: which views pay for their forward passes."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rightly.cli.console import OUT, print_sentence, show_steps, write_json
from rightly.cli.inputs import BootstrapSeed, Cal, Json, LabelFiles, Probabilities, read_data_sets

if TYPE_CHECKING:
    from rightly.evaluation.views import ViewGain

EXAMPLE = "rightly views cal.npz --most 3"


def run(
    cal: Cal,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="Try sets of at most this many views.", show_default="all"),
    ] = None,
    labels: LabelFiles = None,
    probabilities: Probabilities = False,
    bootstrap_seed: BootstrapSeed = 0,
    json: Json = None,
) -> None:
    """Rank views by what their forward passes gain."""
    from rightly.evaluation.views import rank_views, recommend_views
    from rightly.reporting.terminal import render_views, show

    [(predictions, truth)] = read_data_sets([cal], labels, probabilities)
    if most is not None and most < 1:
        raise ValueError(f"--most must be at least 1, got {most}")
    with show_steps() as progress:
        ranking = rank_views(predictions, truth, most=most, seed=bootstrap_seed, progress=progress)
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
