"""Commands that work on stored predictions: compare, rank, evaluate, methods."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rightly.calibrators import CALIBRATORS, load_calibrator
from rightly.cli.consoles import ERR, OUT
from rightly.evaluation.measurement import (
    TABLE_METRICS,
    TestSets,
    before_and_after,
    compare,
    is_random,
    mean_ranks,
    missing,
    split_by_shift,
)
from rightly.evaluation.results import SIGNIFICANT, Bootstrap, Result, read_json, write_json
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import min_resamples
from rightly.predictions import Predictions, load
from rightly.reporting import tables
from rightly.reporting import terminal as verdicts
from rightly.tensor_shapes import Labels

REFERENCE = "temperature_scaling"  # what one does without thinking


def add_commands(commands: Any) -> None:
    """The commands of this module and their arguments."""
    add = commands.add_parser("compare", help="fit many calibrators, compare them on test sets")
    add.add_argument(
        "cal", help="calibration predictions with labels (.npz, or a folder that collect wrote)"
    )
    add.add_argument("--on", action="append", required=True, metavar="[NAME=]FILE", help="test set")
    add.add_argument("--methods", default="all", help="all, or names joined by commas")
    add.add_argument("--metrics", default=",".join(TABLE_METRICS), help="all, or names")
    add.add_argument("--views", help="use only these views, in this order")
    add.add_argument("--seeds", type=int, default=1, help="how often to fit what is random")
    add.add_argument(
        "--reference",
        metavar="NAME",
        help=f"method the others are tested against ({REFERENCE}, or the first where that is "
        "not compared)",
    )
    _add_bootstrap(add)
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_compare)

    add = commands.add_parser("rank", help="mean, spread and mean rank over several classifiers")
    add.add_argument("tables", nargs="+", help="what compare --json wrote, one file a classifier")
    add.set_defaults(run=_rank)

    add = commands.add_parser("evaluate", help="every metric, before and after calibration")
    add.add_argument("calibrator", help="a saved calibrator (.safetensors)")
    add.add_argument("test", help="test predictions with labels (.npz or folder)")
    _add_bootstrap(add)
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_evaluate)

    add = commands.add_parser("methods", help="what calibrators there are")
    add.set_defaults(run=_methods)


def _add_bootstrap(add: Any) -> None:
    add.add_argument(
        "--intervals", action=argparse.BooleanOptionalAction, default=True, help="and tests"
    )
    add.add_argument(
        "--resamples", type=int, help="of each test set (1000, or more where many tests ask for it)"
    )
    add.add_argument("--seed", type=int, default=0, help="of the resamples")


def _compare(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    tests = named_tests(chosen.on, chosen.views)
    metrics = list(METRICS) if chosen.metrics == "all" else names_in(chosen.metrics)
    methods = methods_for(chosen.methods, predictions, tests)
    bootstrap = None
    if chosen.intervals:
        bootstrap = bootstrap_for(methods, chosen.resamples, chosen.seed, chosen.reference)
    elif chosen.reference:
        raise ValueError("--reference has no meaning with --no-intervals: leave one of them out")
    rows = compared(predictions, labels, tests, methods, metrics, chosen.seeds, bootstrap)
    if bootstrap is None:
        tables.print_comparison(rows, OUT)
    else:
        assert bootstrap.reference is not None
        verdicts.print_verdicts(rows, OUT, bootstrap.reference, bootstrap)
    if chosen.json:
        write_json(Path(chosen.json), rows, bootstrap)


def bootstrap_for(
    methods: Sequence[str], resamples: int | None, seed: int, reference: str | None = None
) -> Bootstrap:
    """Enough resamples to tell these methods from the reference, if not said otherwise."""
    enough = max(1000, min_resamples(len(methods) - 1, SIGNIFICANT))
    default = REFERENCE if REFERENCE in methods else methods[0]
    return Bootstrap(resamples or enough, seed, reference or default)


def _rank(chosen: argparse.Namespace) -> None:
    found = {path: read_json(Path(path)) for path in chosen.tables}
    ranks_of_methods = mean_ranks(found)
    kept = {one.calibrator for one in ranks_of_methods}
    out = {row.calibrator for rows in found.values() for row in rows} - kept
    if out:
        ERR.print(f"left out, as not in every file: {', '.join(sorted(out))}", style="dim")
    OUT.print(verdicts.rank_table(ranks_of_methods))
    OUT.print(
        f"\nOver {len(found)} classifiers: mean over test sets ± standard deviation over "
        "classifiers; ranks count from 1 over metrics, test sets and classifiers, and ties share "
        "their mean. Values times 100, but nll."
    )


def named_tests(items: Sequence[str], views: str | None) -> dict[str, tuple[Predictions, Labels]]:
    """The test sets of arguments [NAME=]FILE; a file with shifts makes several."""
    tests: dict[str, tuple[Predictions, Labels]] = {}
    for item in items:
        name, _, path = item.rpartition("=")
        name = name or Path(path).stem
        for title, test in split_by_shift(name, *labelled(path, views)).items():
            if title in tests:
                raise ValueError(
                    f"--on needs a different name for each test set, got {title!r} twice"
                )
            tests[title] = test
    return tests


def methods_for(asked: str, predictions: Predictions, tests: TestSets) -> list[str]:
    """The methods named, or all that these predictions allow, with a word on those left out."""
    if asked != "all":
        return names_in(asked)
    lacking = {name: missing(name, predictions, tests) for name in CALIBRATORS}
    for need in ("view_logits", "features"):
        out = [name for name, needs in lacking.items() if need in needs]
        if out:
            ERR.print(f"left out, for want of {need}: {', '.join(out)}", style="dim")
    return [name for name, needs in lacking.items() if not needs]


def compared(
    predictions: Predictions,
    labels: Labels,
    tests: TestSets,
    methods: Sequence[str],
    metrics: Sequence[str],
    seeds: int,
    bootstrap: Bootstrap | None = None,
) -> list[Result]:
    """Compares with a progress bar."""
    total = sum(seeds if is_random(name) else 1 for name in methods)
    with Progress(
        TextColumn("{task.description:<34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=ERR,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=total)
        begun = 0

        def announce(name: str) -> None:
            nonlocal begun
            progress.update(task, description=f"fitting {name}", completed=begun)
            begun += 1

        return compare(predictions, labels, tests, methods, metrics, seeds, announce, bootstrap)


def _evaluate(chosen: argparse.Namespace) -> None:
    fitted = load_calibrator(chosen.calibrator)
    loaded = labelled(chosen.test, ",".join(fitted.view_names) or None)
    bootstrap = Bootstrap(chosen.resamples or 1000, chosen.seed) if chosen.intervals else None
    rows: list[Result] = []
    for name, (predictions, labels) in split_by_shift(Path(chosen.test).stem, *loaded).items():
        accuracy = float(predictions.correct(labels).double().mean())
        title = f"{fitted.title} on {name}: {len(predictions)} samples, {accuracy:.1%} right"
        OUT.print(title, style="bold", soft_wrap=True)
        before, after, change = before_and_after(fitted, name, predictions, labels, bootstrap)
        if bootstrap is None:
            values = [{key: row.value for key, row in one.items()} for one in (before, after)]
            OUT.print(tables.before_and_after(*values))
        else:
            _fit_width(table := verdicts.before_and_after(before, after, change))
            OUT.print(table)
        OUT.print()
        rows += [*before.values(), *after.values()]
    OUT.print("Shares are times 100; ece, ace, mce and classwise_ece use 25 bins.", style="dim")
    if bootstrap is not None:
        OUT.print(
            f"Beside each value its 95 % interval ({bootstrap.resamples} resamples, seed "
            f"{bootstrap.seed}); changes are paired, each tested alone at 5 %.",
            style="dim",
        )
    if chosen.json:
        write_json(Path(chosen.json), rows, bootstrap)


def _fit_width(table: Any) -> None:
    """A file or a pipe has no edge."""
    if not OUT.is_terminal:
        unbound = OUT.options.update(max_width=10_000)
        OUT.width = max(OUT.width, OUT.measure(table, options=unbound).maximum)


def _methods(chosen: argparse.Namespace) -> None:
    OUT.print(tables.methods_table())


def labelled(path: str, views: str | None) -> tuple[Predictions, Labels]:
    """Predictions with labels, of these views only where some are named."""
    predictions, labels = _loaded(path, views)
    if labels is None:
        raise ValueError(f"{path} must hold labels to fit or measure with, but it has none")
    return predictions, labels


def _loaded(path: str, views: str | None) -> tuple[Predictions, Labels | None]:
    predictions, labels = load(path)
    if views is not None and predictions.view_names != tuple(names_in(views)):
        predictions = predictions.with_views(names_in(views))
    return predictions, labels


def names_in(joined: str) -> list[str]:
    return [name.strip() for name in joined.split(",") if name.strip()]
