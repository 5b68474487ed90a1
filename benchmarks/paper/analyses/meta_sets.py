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

from benchmarks.paper.analyses.analysis import (
    Analysis,
    Context,
    Row,
    Table,
    average_rows,
    fit_method,
    measure_percent,
    mix_to_accuracy,
    pool,
)
from benchmarks.paper.analyses.drawing import SMALL, draw_lines, group_series
from benchmarks.paper.gathering import Labelled

LEVELS = 5
IN_TEST, IN_CALIBRATION = 500, 250
HARD = 0.2
METHODS = ("uncalibrated", "temperature_scaling", "ce_views", "ca_views", "ca_balanced_views")
METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    in_tests, in_calibration, on_hard = [], [], []
    for name, trial in context.trials():
        context.advance(name)
        tests = list(trial.tests.values())
        shifted = [data for test, data in trial.tests.items() if context.kind(test) == "shifted"]
        calibrators = {method: fit_method(method, trial.calibration) for method in METHODS}
        for level in build_levels(pool(tests), IN_TEST):
            for method, calibrator in calibrators.items():
                in_tests.append(measure_row(name, method, level, calibrator, level["data"]))
        everything = pool(shifted)
        hard = mix_to_accuracy(everything, HARD)
        for level in build_levels(trial.calibration, IN_CALIBRATION):
            for method in METHODS:
                calibrator = fit_method(method, level["data"])
                in_calibration.append(measure_row(name, method, level, calibrator, everything))
                on_hard.append(measure_row(name, method, level, calibrator, hard))
    columns = ("p_true / p_predicted", "confidence if wrong", *METRICS)
    return [
        Table("test", average_rows(in_tests, ("method", "level"), columns)),
        Table("calibration", average_rows(in_calibration, ("method", "level"), columns)),
        Table("hard", average_rows(on_hard, ("method", "level"), columns)),
    ]


def build_levels(data: Labelled, count: int) -> list[Row]:
    """Sets of as many right as wrong samples, from narrowly to absolutely wrong."""
    predictions, labels = data
    ratio = compute_closeness(predictions, labels)
    wrong = (~predictions.correct(labels)).nonzero().squeeze(-1)
    wrong = wrong[ratio[wrong].argsort(descending=True)]
    right = predictions.correct(labels).nonzero().squeeze(-1)
    count = min(count, len(wrong), len(right))
    generator = torch.Generator().manual_seed(0)
    right = right[torch.randperm(len(right), generator=generator)[:count]]
    levels = []
    for i, start in enumerate(np.linspace(0, len(wrong) - count, LEVELS).round().astype(int)):
        subset = wrong[int(start) : int(start) + count]
        rows = torch.cat([right, subset])
        levels.append(
            {
                "level": i + 1,
                "ratio": float(ratio[subset].mean()),
                "data": (predictions[rows], labels[rows]),
            }
        )
    return levels


def compute_closeness(predictions: Any, labels: Tensor) -> Tensor:
    """p_true / p_predicted of each sample, by the classifier's own probabilities."""
    top = predictions.logits.amax(-1)
    true = predictions.logits.gather(-1, labels[:, None]).squeeze(-1)
    return (true - top).exp().double()


def measure_row(name: str, method: str, level: Row, calibrator: Any, data: Labelled) -> Row:
    """Metrics of a calibrator, and its mean confidence where the classifier is wrong."""
    predictions, labels = data
    wrong = ~predictions.correct(labels)
    confidence = calibrator.confidence(predictions)[wrong]
    return {
        "classifier": name,
        "method": method,
        "level": level["level"],
        "p_true / p_predicted": level["ratio"],
        "confidence if wrong": 100 * float(confidence.mean()),
        **measure_percent(calibrator, data, METRICS),
    }


def draw(tables: Sequence[Table], axes: Any) -> None:
    titles = (
        "wrong samples of the test set",
        "of the calibration set,\ntested on shifted sets",
        "the same, tested where\none in five is right",
    )
    for ax, table, title in zip(axes, tables, titles, strict=True):
        series = group_series(table.rows, "method", "p_true / p_predicted", "ece")
        draw_lines(ax, series, "p_true / p_predicted if wrong", "ECE (%)", legend=ax is axes[0])
        ax.invert_xaxis()
        ax.set_title(title, fontsize=SMALL)


ANALYSIS = Analysis(
    "do narrowly wrong samples set the correctness-aware loss apart?",
    compute,
    draw,
    panels=3,
    height=2.6,
)
