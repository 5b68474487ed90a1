"""Measures Rightly's own calibrator against its targets, beside temperature scaling.

    python -m benchmarks.own.evaluate_own PREDICTIONS --classifiers resnet20,mobilenet \
        --shifts gaussian_blur,gaussian_noise [--shift-augmentation FOLDER [--strict]] [--ranks] \
        [--expected-shift 0.5] [--neighbours 1000] [--views hflip,translation] [--boosting] \
        [--oracle] [--out results.csv]

PREDICTIONS/CLASSIFIER/{cal,ind,SHIFT}.npz hold predictions and labels, as `rightly.save` writes
them; ind is the test set in distribution. FOLDER/CLASSIFIER.npz (see collect_shift_augmentation)
holds the same classifier's predictions for calibration images under synthetic shifts, with the same
views. No shift is tested on a calibrator that was fitted on it, with --strict on one like it (any
blur for a blur). --classifiers all and --shifts all take all that lie there. --ranks also fits
every other registry entry that can be; --boosting also measures what it began from, gradient
boosting on much evidence; --oracle what could be had if each shift were known: fitted on half of
each set, tested on the other. --out keeps the values in a long table, and what it has is not fitted
again.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

import rightly
from benchmarks.long_table import Entry, append_entries, read_entries
from benchmarks.own.boosting import Labelled, measure_boosting
from benchmarks.own.targets import (
    BASE,
    IN_DISTRIBUTION,
    format_means,
    format_ranks,
    format_targets,
    list_classifiers,
)
from rightly.evaluation.compare import resolve_methods
from rightly.evaluation.data_sets import load_data_set
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.metrics import METRICS
from rightly.predictions import Predictions
from rightly.transforms.shifts import SHIFTS, kind

OWN = "correctness_logistic"
Tests = Mapping[str, Labelled]
Values = Mapping[str, Mapping[str, float]]  # test set -> metric -> value
Measure = Callable[[], tuple[Values, float]]  # and the seconds that fitting took

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--classifiers", required=True, help="names joined by commas, or all")
    parser.add_argument("--shifts", required=True, help="names joined by commas, or all")
    parser.add_argument("--shift-augmentation", type=Path, metavar="FOLDER")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--views", help="use only these views")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--expected-shift", type=float, default=0.5)
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--boosting", action="store_true")
    parser.add_argument("--oracle", action="store_true")
    parser.add_argument("--out", type=Path, metavar="CSV")
    options = parser.parse_args()
    classifiers, shifts = list_names(options)
    entries: list[Entry] = []
    for name in classifiers:
        entries += evaluate_classifier(name, shifts, options)
    print("", *format_means(entries), "", *format_targets(entries), sep="\n")
    if options.ranks:
        print("", *format_ranks(entries), sep="\n")


def list_names(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Classifiers and shifts as the options name them, `all` by the files that there are."""
    classifiers = list_classifiers(options.predictions, options.classifiers)
    shifts = options.shifts.split(",")
    if shifts == ["all"]:
        files = (options.predictions / classifiers[0]).glob("*.npz")
        shifts = sorted({file.stem for file in files} - {"cal", IN_DISTRIBUTION})
    return classifiers, shifts


def evaluate_classifier(
    name: str, shifts: Sequence[str], options: argparse.Namespace
) -> list[Entry]:
    """The rows of all methods for one classifier, fitted where the table does not have them."""
    folder, views = options.predictions / name, options.views.split(",") if options.views else None
    cal = load_data_set(folder / "cal.npz", views)
    tests = {
        test: load_data_set(folder / f"{test}.npz", views) for test in (IN_DISTRIBUTION, *shifts)
    }
    arguments = {"expected_shift": options.expected_shift, "neighbours": options.neighbours}
    setup = describe_setup(options)
    stored = [] if options.out is None else read_entries(options.out)
    entries: list[Entry] = []
    for method, measure_it in list_methods(name, cal, tests, arguments, options).items():
        rows = [
            row
            for row in stored
            if row[:2] == (setup, name) and row.method == method and row.test_set in tests
        ]
        if len(rows) < len(tests) * len(TABLE_METRICS):
            values, seconds = measure_it()
            print(f"{name}: {method} fitted in {seconds:.2f} s", flush=True)
            rows = [
                Entry(setup, name, test, method, 0, metric, value, len(tests[test][1]), seconds)
                for test, of_test in values.items()
                for metric, value in of_test.items()
            ]
            if options.out is not None:
                append_entries(options.out, rows)
        entries += rows
    return entries


def list_methods(
    name: str,
    cal: Labelled,
    tests: Tests,
    arguments: Mapping[str, float],
    options: argparse.Namespace,
) -> dict[str, Measure]:
    """What measures each method that the options ask for, by its name in the table."""
    methods: dict[str, Measure] = {
        BASE: lambda: measure_method(BASE, cal, tests),
        OWN: lambda: measure_method(OWN, cal, tests, **arguments),
    }
    if options.boosting:
        methods["boosting"] = lambda: time_call(lambda: measure_boosting(cal, tests))
    if options.oracle:
        methods["oracle"] = lambda: time_call(
            lambda: {test: measure_oracle(*data) for test, data in tests.items()}
        )
    if options.shift_augmentation:
        path = options.shift_augmentation / f"{name}.npz"
        views = options.views.split(",") if options.views else None
        methods[f"{OWN}, shift augmentation"] = lambda: measure_augmented(
            cal, load_data_set(path, views), tests, arguments, options.strict
        )
    if options.ranks:
        for other in resolve_methods("all", cal, tests).methods:
            if other not in methods:
                methods[other] = lambda other=other: measure_method(other, cal, tests)
    return methods


def describe_setup(options: argparse.Namespace) -> str:
    """The options that change a fit, so that a table keeps values of different ones apart."""
    parts = [f"own {options.predictions.name}", f"expected_shift {options.expected_shift:g}"]
    parts += [f"neighbours {options.neighbours}"] if options.neighbours else []
    parts += [f"views {options.views}"] if options.views else []
    return "; ".join([*parts, "strict"] if options.strict else parts)


def time_call(work: Callable[[], T]) -> tuple[T, float]:
    """What a function returns, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def measure_method(
    method: str, cal: Labelled, tests: Tests, **arguments: float
) -> tuple[Values, float]:
    """The table's metrics of a registry entry on each test set, and the seconds of its fit."""
    built = rightly.calibrator(method, **arguments)
    calibrator, seconds = time_call(lambda: built.fit(*cal))
    values = {name: measure(calibrator, *test, TABLE_METRICS) for name, test in tests.items()}
    return values, seconds


def measure_oracle(predictions: Predictions, labels: torch.Tensor) -> dict[str, float]:
    """The table's metrics of a set, each half tested by what was fitted on the other."""
    even = torch.arange(len(predictions)) % 2 == 0
    confidence = np.zeros(len(predictions))
    for half in (even, ~even):
        calibrator = rightly.calibrator(OWN, expected_shift=0.0)
        calibrator.fit(predictions[half], labels[half])
        confidence[~half] = calibrator.confidence(predictions[~half]).numpy()
    correct = predictions.correct(labels).numpy()
    return {key: METRICS[key].measure(confidence, correct) for key in TABLE_METRICS}


def measure_augmented(
    cal: Labelled,
    augmentation: Labelled,
    tests: Tests,
    arguments: Mapping[str, float],
    strict: bool,
) -> tuple[Values, float]:
    """Each test set after a fit on all shifts but its own, or but those like it; mean seconds."""
    shifted, labels = augmentation
    group = find_family if strict else kind
    groups = [group(shift) for shift in shifted.shift_names]
    values, seconds = {}, []
    for name, test in tests.items():
        kept = torch.tensor([False, *(other != group(name) for other in groups)])[shifted.shift]
        joined = join_augmentation(cal[0], shifted[kept])
        data = joined, torch.cat([cal[1], labels[kept]])
        built = rightly.calibrator(OWN, **arguments)
        calibrator, took = time_call(lambda built=built, data=data: built.fit(*data))
        seconds.append(took)
        weight = float(calibrator.stored()["shift_weight"])
        count = len(shifted.shift[kept].unique())
        print(f"  {name}: fitted on {count} shifts, weight {weight:g}, {took:.1f} s", flush=True)
        values[name] = measure(calibrator, *test, TABLE_METRICS)
    return values, float(np.mean(seconds))


def join_augmentation(cal: Predictions, shifted: Predictions) -> Predictions:
    """Calibration rows and shifted ones, whose images are numbered by the former's rows."""
    return Predictions(
        torch.cat([cal.logits, shifted.logits]),
        torch.cat([cal.view_logits, shifted.view_logits]),
        view_names=cal.view_names,
        shift=torch.cat([torch.zeros(len(cal), dtype=torch.int64), shifted.shift]),
        shift_names=shifted.shift_names,
        image=torch.cat([torch.arange(len(cal)), shifted.images()]),
    )


def find_family(shift: str) -> str:
    """The module of a shift, which holds those like it; its own name where it is not ours."""
    return SHIFTS[kind(shift)].transform.__module__ if kind(shift) in SHIFTS else shift


if __name__ == "__main__":
    main()
