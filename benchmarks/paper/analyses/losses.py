"""CA against the losses of training-time methods, DCA and MDCA, and their sums, in one network."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.paper.analyses.analysis import Analysis, Context, Row, Table
from benchmarks.paper.analyses.drawing import SMALL, finish_axes
from benchmarks.paper.analyses.table_values import complete_values
from rightly.metrics import METRICS as ALL
from rightly.reporting.figures.style import BLUE

METHODS = (
    "uncalibrated",
    "ce_views",
    "ca_views",
    "ca_ce_views",
    "dca_views",
    "mdca_views",
    "dca_ca_views",
    "mdca_ca_views",
)
METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    values = complete_values(context, METHODS, METRICS)
    rows: list[Row] = []
    for on in ("in distribution", "shifted"):
        for method in METHODS:
            row: Row = {"method": method, "on": on}
            for metric in METRICS:
                ours = {
                    key: value
                    for key, value in values[method, metric].items()
                    if context.kind(key[1]) == on
                }
                by_classifier = [
                    np.mean([value for (one, _), value in ours.items() if one == name])
                    for name in dict.fromkeys(one for one, _ in ours)
                ]
                row[metric] = 100 * float(np.mean(by_classifier))
                row[f"± {metric}"] = 100 * float(np.std(by_classifier))
                sign = 1 if ALL[metric].lower_is_better else -1
                row[f"better than CA, {metric}"] = sum(
                    sign * value < sign * values["ca_views", metric][key]
                    for key, value in ours.items()
                )
            row["of"] = len(ours)
            rows.append(row)
    return [Table("losses", rows)]


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = [row for row in tables[0].rows if row["on"] == "shifted"]
    for ax, metric, label in zip(axes, ("ece", "auroc"), ("ECE (%)", "AUROC (%)"), strict=True):
        for i, row in enumerate(rows):
            ax.errorbar(i, row[metric], row[f"± {metric}"], fmt="o", color=BLUE, capsize=3)
        ax.set_xticks(range(len(rows)), [row["method"] for row in rows], rotation=40, ha="right")
        ax.tick_params(axis="x", labelsize=SMALL)
        finish_axes(ax, "", f"{label}, shifted sets", legend=False)


ANALYSIS = Analysis("is CA better than DCA and MDCA, or helped by them?", compute, draw)
