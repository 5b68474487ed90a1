"""k in top-k: how many of the classes that the image favours are looked up in its views."""

from collections.abc import Sequence
from typing import Any

from benchmarks.paper.analyses.analysis import (
    Analysis,
    Context,
    Row,
    Table,
    average_rows,
    fit_method,
    measure_percent,
)
from benchmarks.paper.analyses.drawing import draw_lines, group_series
from rightly.calibrators.temperature_network import TemperatureNetwork

LOSSES = {"ca_views": "correctness_aware", "ce_views": "cross_entropy"}
METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    rows: list[Row] = []
    for name, trial in context.trials():
        context.advance(name)
        predictions, labels = trial.calibration
        most = min(10, predictions.class_count)
        plain = {method: fit_method(method, trial.calibration) for method in FLAT}
        for k in range(1, most + 1):
            networks = {
                method: TemperatureNetwork("view_scores", loss, k=k).fit(predictions, labels)
                for method, loss in LOSSES.items()
            }
            for method, calibrator in (plain | networks).items():
                for test, data in trial.tests.items():
                    values = measure_percent(calibrator, data, METRICS)
                    rows.append({"method": method, "k": k, "on": context.kind(test), **values})
    return [Table("top_k", average_rows(rows, ("method", "k", "on"), METRICS))]


FLAT = ("uncalibrated", "temperature_scaling")  # they do not look at k


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = [row for row in tables[0].rows if row["on"] == "shifted"]
    for ax, metric, label in zip(axes, ("ks", "auroc"), ("KS (%)", "AUROC (%)"), strict=True):
        draw_lines(ax, group_series(rows, "method", "k", metric), "k", f"{label}, shifted sets")


ANALYSIS = Analysis("how many classes of each view does the network need?", compute, draw)
