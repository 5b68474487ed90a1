"""Arranges the predictions of a setup as `rightly benchmark` reads them.

    python -m benchmarks.paper.arrange cifar10-kit --data .../cifar10_predictions --out folders/
    rightly benchmark folders/cifar10-kit --out results/cifar10-kit --methods paper,baseline

Writes OUT/SETUP/CLASSIFIER/SET.npz, with `cal` to fit on. A test set for which the calibration set
is cut in halves or restricted to fewer classes (ImageNet's val, a, r and objectnet) is a task of
its own, in OUT/SETUP-SET. What is there already is left as it is.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import rightly
from benchmarks.paper.gathering import MissingError, Places, gather_trials
from benchmarks.paper.run import add_arguments, notify, read_places, read_selection
from benchmarks.paper.setups import SETUPS, Setup

CAL = "cal"


def arrange_setup(
    setup: Setup, places: Places, out: Path, classifiers: Sequence[str], every_view: bool = False
) -> list[Path]:
    """The folders of tasks, each with a folder a classifier."""
    tasks: dict[Path, None] = {}
    for classifier in setup.classifiers:
        if classifier.name not in classifiers:
            continue
        try:
            trials = gather_trials(setup, classifier, places, notify, every_view=every_view)
        except MissingError as reason:
            notify(f"skipped: {reason}")
            continue
        for trial in trials:
            task = out / (f"{setup.name}-{trial.task}" if trial.task else setup.name)
            tasks[task] = None
            folder = task / classifier.name
            folder.mkdir(parents=True, exist_ok=True)
            if CAL in trial.tests:
                raise ValueError(f"a test set of {setup.name} must not be called {CAL!r}")
            for name, labelled in {CAL: trial.calibration, **trial.tests}.items():
                if not (folder / f"{name}.npz").exists():
                    rightly.save(folder / f"{name}.npz", *labelled)
    return list(tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=SETUPS)
    add_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--every-view", action="store_true", help="not only the paper's three")
    options = parser.parse_args(arguments)
    setup = SETUPS[options.setup]
    try:
        places = read_places(options, options.out)
        _, classifiers, _ = read_selection(options, setup)
        tasks = arrange_setup(setup, places, options.out, classifiers, options.every_view)
    except (ValueError, TypeError, OSError) as error:
        notify(f"benchmarks.paper.arrange: {error}")
        return 2
    for task in tasks:
        print(f"rightly benchmark {task} --out results/{task.name}")
    return 0 if tasks else 2


if __name__ == "__main__":
    sys.exit(main())
