"""All methods, in distribution and under shift: mean over classifiers, and mean rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

import rightly
from analyses.described import Analysis, Context, Row, Table
from analyses.drawing import bars
from analyses.measured import values_of
from rightly.metrics import METRICS as ALL

METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    values = values_of(context, tuple(rightly.CALIBRATORS), METRICS)
    # Methods whose inputs this setup lacks have no values, and take no part.
    methods = [method for method in rightly.CALIBRATORS if (method, "ece") in values]
    ranks = {metric: mean_ranks(values, methods, metric) for metric in METRICS}
    rows: list[Row] = []
    for method in methods:
        row: Row = {"method": method}
        for on in ("in distribution", "shifted"):
            for metric in METRICS:
                found = [
                    value
                    for (_, test), value in values[method, metric].items()
                    if context.kind(test) == on
                ]
                row[f"{metric}, {on}"] = 100 * float(np.mean(found))
        row |= {f"rank, {metric}": ranks[metric][method] for metric in METRICS}
        rows.append(row)
    return [Table("methods", rows)]


def mean_ranks(values: Any, methods: Sequence[str], metric: str) -> dict[str, float]:
    """Place among the methods for each classifier and test set, 1 is best, averaged."""
    keys = list(values[methods[0], metric])
    sign = 1 if ALL[metric].lower_is_better else -1
    matrix = np.array([[sign * values[one, metric][key] for key in keys] for one in methods])
    return dict(zip(methods, rankdata(matrix, axis=0).mean(1).tolist(), strict=True))


def draw(tables: Sequence[Table], axes: Any) -> None:
    for ax, on in zip(axes, ("in distribution", "shifted"), strict=True):
        bars(ax, {row["method"]: row[f"brier, {on}"] for row in tables[0].rows}, f"Brier (%), {on}")


ANALYSIS = Analysis("which methods are best, in distribution and under shift?", compute, draw)
