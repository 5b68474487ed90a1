"""Narrowly against absolutely wrong samples, in the test set and in the calibration set.

Wrong samples are sorted by p_true / p_predicted; the paper calls those above 0.5 narrowly wrong.
Test sets: 500 of them from one stretch of that order and the same 500 right samples, from all
test sets together. Calibration sets: 250 and 250 from the calibration set (the paper has 1,000 and
1,000 of a larger one), tested on all shifted sets together, and on the same mixed anew so that one
sample in five is right, which is nearer to the paper's ImageNet-A.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analyses.described import (
    Analysis,
    Context,
    Row,
    Table,
    fitted,
    means,
    measured,
    mixture,
    pooled,
)
from analyses.drawing import lines, series_of
from gathering import Labelled

LEVELS = 5
IN_TEST, IN_CALIBRATION = 500, 250
HARD = 0.2
METHODS = ("uncalibrated", "temperature_scaling", "ce_views", "ca_views", "ca_balanced_views")
METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    in_tests, in_calibration, on_hard = [], [], []
    for name, trial in context.trials():
        context.advance(name)
        tests = [data for test, data in trial.tests.items()]
        shifted = [data for test, data in trial.tests.items() if context.kind(test) == "shifted"]
        calibrators = {method: fitted(method, trial.calibration) for method in METHODS}
        for level in levels(pooled(tests), IN_TEST):
            for method, calibrator in calibrators.items():
                in_tests.append(row_of(name, method, level, calibrator, level["data"]))
        everything = pooled(shifted)
        hard = mixture(everything, HARD)
        for level in levels(trial.calibration, IN_CALIBRATION):
            for method in METHODS:
                calibrator = fitted(method, level["data"])
                in_calibration.append(row_of(name, method, level, calibrator, everything))
                on_hard.append(row_of(name, method, level, calibrator, hard))
    columns = ("p_true / p_predicted", "confidence if wrong", *METRICS)
    return [
        Table("test", means(in_tests, ("method", "level"), columns)),
        Table("calibration", means(in_calibration, ("method", "level"), columns)),
        Table("hard", means(on_hard, ("method", "level"), columns)),
    ]


def levels(data: Labelled, count: int) -> list[Row]:
    """Sets of as many right as wrong samples, from narrowly to absolutely wrong."""
    predictions, labels = data
    ratio = closeness(predictions, labels)
    wrong = (~predictions.correct(labels)).nonzero().squeeze(-1)
    wrong = wrong[ratio[wrong].argsort(descending=True)]
    right = predictions.correct(labels).nonzero().squeeze(-1)
    count = min(count, len(wrong), len(right))
    generator = torch.Generator().manual_seed(0)
    right = right[torch.randperm(len(right), generator=generator)[:count]]
    found = []
    for i, start in enumerate(np.linspace(0, len(wrong) - count, LEVELS).round().astype(int)):
        some = wrong[int(start) : int(start) + count]
        rows = torch.cat([right, some])
        found.append(
            {
                "level": i + 1,
                "ratio": float(ratio[some].mean()),
                "data": (predictions[rows], labels[rows]),
            }
        )
    return found


def closeness(predictions: Any, labels: Tensor) -> Tensor:
    """p_true / p_predicted of each sample, by the classifier's own probabilities."""
    top = predictions.logits.amax(-1)
    true = predictions.logits.gather(-1, labels[:, None]).squeeze(-1)
    return (true - top).exp().double()


def row_of(name: str, method: str, level: Row, calibrator: Any, data: Labelled) -> Row:
    predictions, labels = data
    wrong = ~predictions.correct(labels)
    confidence = calibrator.confidence(predictions)[wrong]
    return {
        "classifier": name,
        "method": method,
        "level": level["level"],
        "p_true / p_predicted": level["ratio"],
        "confidence if wrong": 100 * float(confidence.mean()),
        **measured(calibrator, data, METRICS),
    }


def draw(tables: Sequence[Table], axes: Any) -> None:
    titles = (
        "wrong samples of the test set",
        "of the calibration set, tested on shifted sets",
        "the same, tested where one in five is right",
    )
    for ax, table, title in zip(axes, tables, titles, strict=True):
        series = series_of(table.rows, "method", "p_true / p_predicted", "ece")
        lines(ax, series, "p_true / p_predicted of the wrong: narrow to absolute", "ECE (%)")
        ax.invert_xaxis()
        ax.set_title(title, fontsize=9)


ANALYSIS = Analysis(
    "do narrowly wrong samples set the correctness-aware loss apart?", compute, draw, panels=3
)
