"""Fits every method for every classifier of a setup and measures it on every test set.

    python -m benchmarks.paper.run cifar10-kit --data .../cifar10_predictions --out results.csv
    python -m benchmarks.paper.run imagenet-kit --data .../imagenet_val2000 --out results.csv

Predictions are read from DATA/CLASSIFIER/SET.npz (or a folder that collect wrote) where they are
stored, and otherwise collected from the images below DATA. Rows that the table already has are
kept, so that a killed run goes on where it was, and a new method adds only its own rows.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.long_table import Entry, append_entries, parse_names, read_entries, unique
from benchmarks.paper.gathering import METHODS, MissingError, Places, Trial, gather_trials
from benchmarks.paper.setups import SETUPS, Setup
from rightly.calibrators import CALIBRATORS
from rightly.evaluation.measurement import fit_method, measure
from rightly.evaluation.selection import find_missing_inputs
from rightly.metrics import METRICS

ADDITIONAL = ("accuracy", "mean_confidence")  # measured beside METRICS: they explain the others
ERR = Console(stderr=True, highlight=False)


def run_setup(
    setup: Setup,
    places: Places,
    out: Path,
    methods: Sequence[str],
    classifiers: Sequence[str],
    seeds: int = 1,
) -> list[Entry]:
    """All rows of the table after adding what it lacked of this setup."""
    entries = read_entries(out)
    with Progress(
        TextColumn("{task.description:<52}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=ERR,
        transient=True,
    ) as bar:
        fits = sum(seeds if CALIBRATORS.find(method).is_random else 1 for method in methods)
        task = bar.add_task(setup.name, total=fits * len(classifiers))

        def begin_progress(title: str, total: int) -> Callable[[str, int, int], object]:
            collecting = bar.add_task(title, total=total)
            return lambda step, done, total: bar.update(collecting, completed=done)

        for classifier in setup.classifiers:
            if classifier.name not in classifiers:
                continue
            try:
                trials = gather_trials(setup, classifier, places, notify, begin_progress)
            except MissingError as reason:
                notify(f"skipped: {reason}")
                trials = []
            for method in methods:
                for seed in range(seeds if CALIBRATORS.find(method).is_random else 1):
                    bar.update(task, description=f"{classifier.name}: {method}")
                    new = measure_missing(
                        setup.name, classifier.name, trials, method, seed, entries
                    )
                    if new:
                        entries = append_entries(out, new)
                    bar.advance(task)
    return entries


def measure_missing(
    setup: str,
    classifier: str,
    trials: Sequence[Trial],
    method: str,
    seed: int,
    entries: Sequence[Entry],
) -> list[Entry]:
    """The rows of one method and seed that the table does not have, freshly measured."""
    keys = {entry.key for entry in entries}
    new: list[Entry] = []
    for trial in trials:
        names = unique(
            name
            for name in trial.tests
            for metric in (*METRICS, *ADDITIONAL)
            if (setup, classifier, name, method, seed, metric) not in keys
        )
        if not names or not has_inputs(method, classifier, trial):
            continue
        start = time.perf_counter()
        calibrator = fit_method(method, *trial.calibration, seed=seed)
        seconds = time.perf_counter() - start
        for name in names:
            predictions, labels = trial.tests[name]
            values = measure(calibrator, predictions, labels)
            values["accuracy"] = float(predictions.correct(labels).double().mean())
            values["mean_confidence"] = float(calibrator.confidence(predictions).mean())
            rows = [
                Entry(setup, classifier, name, method, seed, metric, value, len(labels), seconds)
                for metric, value in values.items()
            ]
            new += [row for row in rows if row.key not in keys]
    return new


def has_inputs(method: str, classifier: str, trial: Trial) -> bool:
    """Whether all that a method needs is there, with a message where it is not."""
    everywhere = [trial.calibration[0], *(test for test, _ in trial.tests.values())]
    needs = find_missing_inputs(method, everywhere)
    if needs:
        notify(f"skipped: {method} for {classifier} needs {', '.join(needs)}")
    return not needs


def notify(text: str) -> None:
    """Prints a line above the progress bar."""
    ERR.print(text, soft_wrap=True, markup=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=SETUPS)
    add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="the long table, a CSV file")
    options = parser.parse_args()
    setup = SETUPS[options.setup]
    try:
        places = read_places(options, options.out.parent)
        entries = run_setup(setup, places, options.out, *read_selection(options, setup))
    except (ValueError, TypeError, OSError) as error:
        notify(f"benchmarks.paper.run: {error}")
        return 2
    except KeyboardInterrupt:
        notify("stopped: the same command goes on from here")
        return 130
    of_setup = [entry for entry in entries if entry.setup == setup.name]
    counts = {
        "classifier": len({entry.classifier for entry in of_setup}),
        "method": len({entry.method for entry in of_setup}),
        "test set": len({entry.test_set for entry in of_setup}),
    }
    listed = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in counts.items())
    print(f"{options.out} has {len(of_setup)} values of {setup.name}: {listed}")
    return 0 if of_setup else 2


def add_arguments(parser: argparse.ArgumentParser, data_required: bool = True) -> None:
    """Adds the options for where the data lie and which part of a setup to use."""
    parser.add_argument("--data", type=Path, required=data_required, metavar="FOLDER")
    parser.add_argument(
        "--predictions",
        type=Path,
        metavar="FOLDER",
        help="where collected predictions go (default: `predictions` beside the output)",
    )
    parser.add_argument("--methods", help="names joined by commas (default: those of the paper)")
    parser.add_argument("--classifiers", help="names joined by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="how often to fit what is random")


def read_places(options: argparse.Namespace, beside: Path) -> Places:
    """Where the options say that data and predictions lie."""
    if not options.data.is_dir():
        raise FileNotFoundError(f"--data must be a folder, but there is no {options.data}")
    return Places(options.data, options.predictions or beside / "predictions")


def read_selection(options: argparse.Namespace, setup: Setup) -> tuple[list[str], list[str], int]:
    """The methods, classifiers and number of seeds that the options select."""
    if options.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {options.seeds}")
    classifiers = [classifier.name for classifier in setup.classifiers]
    return (
        parse_names(options.methods or ",".join(METHODS), list(CALIBRATORS), "--methods"),
        parse_names(options.classifiers, classifiers, "--classifiers"),
        options.seeds,
    )


if __name__ == "__main__":
    sys.exit(main())
