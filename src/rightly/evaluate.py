"""From calibrators and test sets to numbers: one row a calibrator, test set, metric and seed."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from rightly.calibrators import CALIBRATORS, Calibrator, calibrator, method
from rightly.metrics import METRICS, Metric
from rightly.predictions import Predictions, checked_labels
from rightly.shapes import AnyArray, Labels

TABLE_METRICS = ("ece", "brier", "ks", "auroc")  # the columns of the paper's tables

TestSets = Mapping[str, tuple[Predictions, AnyArray]]
Announce = Callable[[str], object]


class Row(NamedTuple):
    """One measured value."""

    calibrator: str
    dataset: str
    metric: str
    value: float
    seed: int


def measure(
    fitted: Calibrator,
    predictions: Predictions,
    labels: AnyArray,
    metrics: Sequence[str] = tuple(METRICS),
) -> dict[str, float]:
    """The chosen metrics of a fitted calibrator on one test set."""
    chosen = {name: metric(name) for name in metrics}
    correct = predictions.correct(labels).cpu().numpy()
    confidence = fitted.confidence(predictions).cpu().numpy()
    probabilities = None
    if any(one.takes == "probabilities" for one in chosen.values()):
        probabilities = fitted.probabilities(predictions).cpu().numpy()
    truth = np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
    return {
        name: one.measure(confidence, correct)
        if one.takes == "confidence"
        else one.measure(probabilities, truth)
        for name, one in chosen.items()
    }


def compare(
    predictions: Predictions,
    labels: AnyArray,
    tests: TestSets,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    announce: Announce = lambda message: None,
) -> list[Row]:
    """Fits every method on the calibration data and measures it on every test set.

    Methods that draw nothing at random are fitted once and count for every seed. Without
    `methods`, all those run whose inputs are there.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    for name in metrics:
        metric(name)
    chosen = tuple(methods) if methods is not None else runnable(predictions, tests)
    rows: list[Row] = []
    for name in chosen:
        for seed in range(seeds):
            if seed and not is_random(name):
                rows += [row._replace(seed=seed) for row in rows if row[0] == name and not row.seed]
                continue
            announce(name)
            arguments: dict[str, Any] = {"seed": seed} if is_random(name) else {}
            fitted = calibrator(name, **arguments).fit(predictions, labels)
            for dataset, (test, truth) in tests.items():
                values = measure(fitted, test, truth, metrics)
                rows += [Row(name, dataset, key, value, seed) for key, value in values.items()]
    return rows


def split_by_shift(
    name: str, predictions: Predictions, labels: AnyArray
) -> dict[str, tuple[Predictions, Labels]]:
    """One test set for the images as they are, and one for each shift they were collected under."""
    known = checked_labels(labels, predictions)
    if predictions.shift is None:
        return {name: (predictions, known)}
    sets = {}
    for value in predictions.shift.unique().tolist():
        title = name
        if value:
            named = len(predictions.shift_names) >= value
            title = predictions.shift_names[value - 1] if named else f"{name} shift {value}"
        rows = predictions.shift == value
        sets[title] = (predictions[rows].as_they_are(), known[rows])
    return sets


def is_random(name: str) -> bool:
    """Whether a method takes a seed."""
    return "seed" in signature(method(name).build).parameters


def runnable(predictions: Predictions, tests: TestSets) -> tuple[str, ...]:
    """The methods whose inputs all these predictions have."""
    return tuple(name for name in CALIBRATORS if not missing(name, predictions, tests))


def missing(name: str, predictions: Predictions, tests: TestSets) -> tuple[str, ...]:
    """What a method needs and some of these predictions lack."""
    everywhere = [predictions, *(test for test, _ in tests.values())]
    return tuple(
        need for need in method(name).needs if any(getattr(p, need) is None for p in everywhere)
    )


def metric(name: str) -> Metric:
    """The metric of this name."""
    if name not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]
