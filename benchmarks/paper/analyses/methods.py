"""All methods, in distribution and under shift: mean over classifiers, and mean rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.long_table import rank_methods
from benchmarks.paper.analyses.analysis import Analysis, Context, Row, Table
from benchmarks.paper.analyses.drawing import draw_bars
from benchmarks.paper.analyses.table_values import complete_entries, nest_values
from benchmarks.paper.gathering import METHODS

METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    entries = complete_entries(context, METHODS, METRICS)
    values = nest_values(entries)
    ranks = {one.calibrator: one.rank for one in rank_methods(entries)}
    rows: list[Row] = []
    # Methods whose inputs this setup lacks have no values, and take no part.
    for method in (method for method in METHODS if method in ranks):
        row: Row = {"method": method}
        for on in ("in distribution", "shifted"):
            for metric in METRICS:
                of_kind = [
                    value
                    for (_, test), value in values[method, metric].items()
                    if context.kind(test) == on
                ]
                row[f"{metric}, {on}"] = 100 * float(np.mean(of_kind))
        row |= {f"rank, {metric}": ranks[method][metric] for metric in METRICS}
        rows.append(row)
    return [Table("methods", rows)]


def draw(tables: Sequence[Table], axes: Any) -> None:
    for ax, on in zip(axes, ("in distribution", "shifted"), strict=True):
        draw_bars(
            ax, {row["method"]: row[f"brier, {on}"] for row in tables[0].rows}, f"Brier (%), {on}"
        )


ANALYSIS = Analysis(
    "which methods are best, in distribution and under shift?", compute, draw, height=4.2
)
