"""Commands that choose: views, and the method of fit."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from rightly.atomic_write import write_atomically
from rightly.cli.consoles import ERR, OUT
from rightly.evaluation.method_selection import EXPECTED_SHIFT, Choice, choose
from rightly.evaluation.view_selection import Gain, rank_views
from rightly.predictions import Predictions, load
from rightly.tensor_shapes import Labels


def add_commands(commands: Any) -> None:
    """The command of this module and its arguments."""
    add = commands.add_parser("views", help="rank views by what their forward passes gain")
    add.add_argument(
        "cal", help="calibration predictions with labels and views (.npz, or a collected folder)"
    )
    add.add_argument("--most", type=int, help="try sets of at most this many views")
    add.add_argument("--seed", type=int, default=0, help="of the intervals' draws")
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_views)


def _views(chosen: argparse.Namespace) -> None:
    predictions, labels = load(chosen.cal)
    if labels is None:
        raise ValueError(f"{chosen.cal} must hold labels to rank views by, but it has none")
    if chosen.most is not None and chosen.most < 1:
        raise ValueError(f"--most must be at least 1, got {chosen.most}")
    with ERR.status("ranking views") as status:
        ranking = rank_views(
            predictions,
            labels,
            most=chosen.most,
            seed=chosen.seed,
            announce=lambda name: status.update(f"ranking views: {name}"),
        )
    OUT.print(
        f"Squared error of the confidence without views: {100 * ranking.without.brier:.3f}, "
        f"log loss {ranking.without.log_loss:.4f}; on images left out of the fit.\n",
        soft_wrap=True,
    )
    OUT.print(_gains("one view", ranking.alone))
    OUT.print("\nSets that grow by the view that gains most:")
    OUT.print(_gains("views", ranking.grown, added=True))
    OUT.print("\nbrier and gains times 100, gains over none; intervals hold 95 %.", style="dim")
    if chosen.json:
        told = {
            "without": _plain(ranking.without),
            "alone": [_plain(gain) for gain in ranking.alone],
            "grown": [_plain(gain) for gain in ranking.grown],
        }
        text = json.dumps(told, indent=1) + "\n"
        write_atomically(Path(chosen.json), lambda part: part.write_text(text))


def _plain(gain: Gain) -> dict[str, Any]:
    return {**asdict(gain), "passes": len(gain.views), "per_pass": gain.per_pass}


def _gains(title: str, gains: Sequence[Gain], *, added: bool = False) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column(title, no_wrap=True)
    for heading in ("passes", "brier ↓", "log loss ↓", "gain ↑", "interval", "a pass ↑"):
        table.add_column(heading, justify="right", no_wrap=True)
    for gain in gains:
        name = f"+ {gain.views[-1]}" if added and len(gain.views) > 1 else gain.views[-1]
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


def chosen_method(
    asked: str, predictions: Predictions, labels: Labels, expected_shift: float | None
) -> str:
    """The method asked for, or with "auto" the one that the calibration data choose."""
    if asked != "auto":
        return asked
    with ERR.status("comparing methods") as status:
        choice = choose(
            predictions,
            labels,
            expected_shift=EXPECTED_SHIFT if expected_shift is None else expected_shift,
            announce=lambda name: status.update(f"comparing: {name}"),
        )
    OUT.print(_candidates(choice))
    OUT.print(f"{choice.reason}.\n", soft_wrap=True, markup=False)
    return choice.method


def _candidates(choice: Choice) -> Table:
    shifted = any(one.shifted is not None for one in choice.judged)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("from the simplest on", no_wrap=True)
    for heading in ("brier ↓", *(("under shift ↓",) if shifted else ()), "above the best", "±"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in choice.judged:
        losses = [one.unshifted, *([one.shifted] if one.shifted is not None else [])]
        table.add_row(
            one.method,
            *(f"{100 * loss:.3f}" for loss in losses),
            f"{100 * one.excess:.3f}",
            f"{100 * one.error:.3f}",
            style="bold" if one.method == choice.method else "",
        )
    return table
