"""Commands that work on stored predictions: compare, fit, evaluate, methods, demo."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rightly import tables
from rightly.calibrators import CALIBRATORS, calibrator, load_calibrator
from rightly.cli.consoles import ERR, OUT
from rightly.demo import TESTS, demo_set
from rightly.evaluate import (
    TABLE_METRICS,
    Row,
    TestSets,
    compare,
    is_random,
    measure,
    missing,
    split_by_shift,
)
from rightly.files import write_whole
from rightly.fitting import fit
from rightly.metrics import METRICS
from rightly.predictions import Predictions
from rightly.shapes import Labels
from rightly.storage import load, source_of


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
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_compare)

    add = commands.add_parser("fit", help="fit one calibrator and save it")
    add.add_argument(
        "cal", help="calibration predictions with labels (.npz, or a folder that collect wrote)"
    )
    add.add_argument("--method", default="ca_views", help="see: rightly methods")
    add.add_argument("--views", help="use only these views, in this order")
    add.add_argument("--seed", type=int, default=0)
    accept = add.add_mutually_exclusive_group()
    accept.add_argument("--threshold", type=float, help="accept predictions at least this sure")
    accept.add_argument(
        "--accuracy",
        type=float,
        help="accept from the lowest threshold whose accepted calibration samples reach this",
    )
    add.add_argument(
        "--budget",
        type=float,
        help="mean forward passes per image: views are looked at only where they pay",
    )
    add.add_argument("--out", required=True, metavar="FILE", help="where to write (.safetensors)")
    add.set_defaults(run=_fit)

    add = commands.add_parser("evaluate", help="every metric, before and after calibration")
    add.add_argument("calibrator", help="a saved calibrator (.safetensors)")
    add.add_argument("test", help="test predictions with labels (.npz or folder)")
    add.add_argument("--json", metavar="FILE", help="also write the values here")
    add.set_defaults(run=_evaluate)

    add = commands.add_parser("methods", help="what calibrators there are")
    add.set_defaults(run=_methods)

    add = commands.add_parser("demo", help="compare all calibrators on data in the package")
    add.set_defaults(run=_demo)


def _compare(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    tests: dict[str, tuple[Predictions, Labels]] = {}
    for item in chosen.on:
        name, _, path = item.rpartition("=")
        name = name or Path(path).stem
        for title, test in split_by_shift(name, *labelled(path, chosen.views)).items():
            if title in tests:
                raise ValueError(
                    f"--on needs a different name for each test set, got {title!r} twice"
                )
            tests[title] = test
    metrics = list(METRICS) if chosen.metrics == "all" else names_in(chosen.metrics)
    methods = _methods_for(chosen.methods, predictions, tests)
    rows = _compared(predictions, labels, tests, methods, metrics, chosen.seeds)
    tables.print_comparison(rows, OUT)
    if chosen.json:
        _write_json(chosen.json, rows)


def _methods_for(asked: str, predictions: Predictions, tests: TestSets) -> list[str]:
    """The methods named, or all that these predictions allow, with a word on those left out."""
    if asked != "all":
        return names_in(asked)
    lacking = {name: missing(name, predictions, tests) for name in CALIBRATORS}
    for need in ("view_logits", "features"):
        out = [name for name, needs in lacking.items() if need in needs]
        if out:
            ERR.print(f"left out, for want of {need}: {', '.join(out)}", style="dim")
    return [name for name, needs in lacking.items() if not needs]


def _compared(
    predictions: Predictions,
    labels: Labels,
    tests: TestSets,
    methods: Sequence[str],
    metrics: Sequence[str],
    seeds: int,
) -> list[Row]:
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

        return compare(predictions, labels, tests, methods, metrics, seeds, announce)


def _fit(chosen: argparse.Namespace) -> None:
    predictions, labels = labelled(chosen.cal, chosen.views)
    arguments: dict[str, Any] = {"seed": chosen.seed} if is_random(chosen.method) else {}
    if chosen.budget is not None:
        arguments["budget"] = chosen.budget
    with ERR.status(f"fitting {chosen.method} on {len(predictions)} predictions"):
        fitted = fit(
            chosen.method,
            predictions,
            labels,
            threshold=chosen.threshold,
            accuracy=chosen.accuracy,
            source=source_of(chosen.cal),
            **arguments,
        )
    fitted.save(chosen.out)
    OUT.print(
        f"{chosen.method}, fitted on {int(predictions.unshifted().sum())} predictions of "
        f"{predictions.class_count} classes, is in {chosen.out}",
        soft_wrap=True,
    )
    _tell_use(fitted.record)


def _tell_use(record: Mapping[str, Any]) -> None:
    """When the calibrator accepts, and what its views cost."""
    chosen = record["threshold"]
    if chosen is not None:
        right = "none of which" if chosen["accuracy"] is None else f"{chosen['accuracy']:.2%}"
        OUT.print(
            f"accepts confidence from {chosen['threshold']:.4f}: {chosen['coverage']:.1%} of the "
            f"calibration samples, {right} right (95 % interval {chosen['accuracy_low']:.2%} to "
            f"{chosen['accuracy_high']:.2%})",
            soft_wrap=True,
        )
    if record["passes"] > 1:
        OUT.print(f"{record['passes']:.2f} forward passes per image", soft_wrap=True)


def _evaluate(chosen: argparse.Namespace) -> None:
    fitted = load_calibrator(chosen.calibrator)
    loaded = labelled(chosen.test, ",".join(fitted.view_names) or None)
    rows: list[Row] = []
    for name, (predictions, labels) in split_by_shift(Path(chosen.test).stem, *loaded).items():
        own = calibrator("uncalibrated").fit(predictions, labels)
        before = measure(own, predictions, labels)
        after = measure(fitted, predictions, labels)
        accuracy = float(predictions.correct(labels).double().mean())
        title = f"{fitted.title} on {name}: {len(predictions)} samples, {accuracy:.1%} right"
        OUT.print(title, style="bold", soft_wrap=True)
        OUT.print(tables.before_and_after(before, after))
        OUT.print()
        for one, values in (("uncalibrated", before), (fitted.title, after)):
            rows += [Row(one, name, key, value, 0) for key, value in values.items()]
    OUT.print("Shares are times 100; ece, ace, mce and classwise_ece use 25 bins.", style="dim")
    if chosen.json:
        _write_json(chosen.json, rows)


def _methods(chosen: argparse.Namespace) -> None:
    OUT.print(tables.methods_table())


def _demo(chosen: argparse.Namespace) -> None:
    predictions, labels = demo_set("cal")
    tests = {title: demo_set(name) for name, title in TESTS.items()}
    OUT.print(
        f"A ResNet-20 on CIFAR-10: every calibrator fitted on {len(predictions)} predictions, "
        "tested in distribution and under two shifts.\n"
    )
    rows = _compared(predictions, labels, tests, list(CALIBRATORS), TABLE_METRICS, 1)
    tables.print_comparison(rows, OUT)
    OUT.print("\nAll values times 100; ece uses 25 bins; ↓ lower is better. The best is bold.")


def labelled(path: str, views: str | None) -> tuple[Predictions, Labels]:
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


def _write_json(path: str, rows: Sequence[Row]) -> None:
    plain = [
        {**row._asdict(), "value": None if math.isnan(row.value) else row.value} for row in rows
    ]
    text = json.dumps({"rows": plain}, indent=1) + "\n"
    write_whole(Path(path), lambda part: part.write_text(text))
