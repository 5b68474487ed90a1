"""Fits every method for every classifier of a setup and measures it on every test set.

    python benchmarks/run.py cifar10-kit --data .../cifar10_predictions --out results.csv
    python benchmarks/run.py imagenet-kit --data .../imagenet_val2000 --out results.csv

Predictions are read from DATA/CLASSIFIER/SET.npz (or a folder that collect wrote) where they are
there, and otherwise collected from the images below DATA. Rows that the table already has are
kept, so that a killed run goes on where it was, and a new method adds only its own rows.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import results
import rightly
from gathering import MissingError, Places, Trial, trials
from results import Result
from rightly.cli.console import ERR, show_warning
from rightly.evaluation.measurement import is_random, measure, missing
from rightly.metrics import METRICS
from setups import SETUPS, Setup

OWN = ("accuracy", "mean_confidence")  # measured beside METRICS: they explain the others


def run(
    setup: Setup,
    places: Places,
    out: Path,
    methods: Sequence[str],
    classifiers: Sequence[str],
    seeds: int = 1,
) -> list[Result]:
    """All rows of the table after adding what it lacked of this setup."""
    rows = results.read(out)
    with Progress(
        TextColumn("{task.description:<52}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=ERR,
        transient=True,
    ) as bar:
        fits = sum(seeds if is_random(method) else 1 for method in methods)
        task = bar.add_task(setup.name, total=fits * len(classifiers))

        def begin(title: str, total: int) -> Callable[[int], object]:
            collecting = bar.add_task(title, total=total)
            return lambda count: bar.advance(collecting, count)

        for classifier in setup.classifiers:
            if classifier.name not in classifiers:
                continue
            try:
                found = trials(setup, classifier, places, say, begin)
            except MissingError as reason:
                say(f"skipped: {reason}")
                found = []
            for method in methods:
                for seed in range(seeds if is_random(method) else 1):
                    bar.update(task, description=f"{classifier.name}: {method}")
                    new = lacking(setup.name, classifier.name, found, method, seed, rows)
                    if new:
                        rows += new
                        results.write(out, rows)
                    bar.advance(task)
    return rows


def lacking(
    setup: str,
    classifier: str,
    found: Sequence[Trial],
    method: str,
    seed: int,
    rows: Sequence[Result],
) -> list[Result]:
    """The rows of one method and seed that the table does not have, freshly measured."""
    have = {row.key for row in rows if row.classifier == classifier and row.method == method}
    new: list[Result] = []
    for trial in found:
        todo = [
            name
            for name in trial.tests
            for metric in (*METRICS, *OWN)
            if (setup, classifier, name, method, seed, metric) not in have
        ]
        tests = {name: trial.tests[name] for name in results.unique(todo)}
        if not tests or not usable(method, classifier, trial):
            continue
        arguments = {"seed": seed} if is_random(method) else {}
        start = time.perf_counter()
        fitted = rightly.calibrator(method, **arguments).fit(*trial.calibration)
        seconds = time.perf_counter() - start
        for name, (predictions, labels) in tests.items():
            values = measure(fitted, predictions, labels)
            values["accuracy"] = float(predictions.correct(labels).double().mean())
            values["mean_confidence"] = float(fitted.confidence(predictions).mean())
            new += [
                Result(setup, classifier, name, method, seed, metric, value, len(labels), seconds)
                for metric, value in values.items()
                if (setup, classifier, name, method, seed, metric) not in have
            ]
    return new


def usable(method: str, classifier: str, trial: Trial) -> bool:
    """Whether all that a method needs is there, with a word where it is not."""
    lacks = missing(method, trial.calibration[0], trial.tests)
    if lacks:
        say(f"skipped: {method} for {classifier}, for want of {', '.join(lacks)}")
    return not lacks


def say(text: str) -> None:
    """A line above the progress bar."""
    ERR.print(text, soft_wrap=True, markup=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=SETUPS)
    add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="the table, a CSV file")
    asked = parser.parse_args()
    setup = SETUPS[asked.setup]
    warnings.showwarning = show_warning
    try:
        rows = run(setup, places_of(asked, asked.out.parent), asked.out, *selection(asked, setup))
    except (ValueError, TypeError, OSError) as error:
        say(f"run.py: {error}")
        return 2
    except KeyboardInterrupt:
        say("stopped: the same command goes on from here")
        return 130
    done = [row for row in rows if row.setup == setup.name]
    print(
        f"{asked.out} has {len(done)} values of {setup.name}: "
        f"{len({row.classifier for row in done})} classifiers, "
        f"{len({row.method for row in done})} methods, "
        f"{len({row.test_set for row in done})} test sets"
    )
    return 0 if done else 2


def add_arguments(parser: argparse.ArgumentParser, data_required: bool = True) -> None:
    """What says where the data lie and which part of a setup to use."""
    parser.add_argument("--data", type=Path, required=data_required, metavar="FOLDER")
    parser.add_argument(
        "--predictions",
        type=Path,
        metavar="FOLDER",
        help="where collected predictions go (default: `predictions` beside the output)",
    )
    parser.add_argument("--methods", help="names joined by commas (default: all)")
    parser.add_argument("--classifiers", help="names joined by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="how often to fit what is random")


def places_of(asked: argparse.Namespace, beside: Path) -> Places:
    """Where the arguments say that data and predictions lie."""
    if not asked.data.is_dir():
        raise FileNotFoundError(f"--data must be a folder, but there is no {asked.data}")
    return Places(asked.data, asked.predictions or beside / "predictions")


def selection(asked: argparse.Namespace, setup: Setup) -> tuple[list[str], list[str], int]:
    """The methods, classifiers and number of seeds asked for."""
    if asked.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {asked.seeds}")
    classifiers = [classifier.name for classifier in setup.classifiers]
    return (
        results.chosen(asked.methods, list(rightly.CALIBRATORS), "methods"),
        results.chosen(asked.classifiers, classifiers, "classifiers"),
        asked.seeds,
    )


if __name__ == "__main__":
    sys.exit(main())
