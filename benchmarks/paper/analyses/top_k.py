"""k in top-k: how many of the classes that the image favours are looked up in its views."""

from collections.abc import Sequence
from typing import Any

from analyses.described import Analysis, Context, Row, Table, fitted, means, measured
from analyses.drawing import lines, series_of
from rightly.calibrators.temperature_network import TemperatureNetwork

LOSSES = {"ca_views": "correctness_aware", "ce_views": "cross_entropy"}
METRICS = ("ece", "brier", "ks", "auroc")


def compute(context: Context) -> list[Table]:
    rows: list[Row] = []
    for name, trial in context.trials():
        context.advance(name)
        predictions, labels = trial.calibration
        most = min(10, predictions.class_count)
        plain = {method: fitted(method, trial.calibration) for method in FLAT}
        for k in range(1, most + 1):
            built = {
                method: TemperatureNetwork("view_scores", loss, k=k).fit(predictions, labels)
                for method, loss in LOSSES.items()
            }
            for method, calibrator in (plain | built).items():
                for test, data in trial.tests.items():
                    values = measured(calibrator, data, METRICS)
                    rows.append({"method": method, "k": k, "on": context.kind(test), **values})
    return [Table("top_k", means(rows, ("method", "k", "on"), METRICS))]


FLAT = ("uncalibrated", "temperature_scaling")  # they do not look at k


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = [row for row in tables[0].rows if row["on"] == "shifted"]
    for ax, metric, label in zip(axes, ("ks", "auroc"), ("KS (%)", "AUROC (%)"), strict=True):
        lines(ax, series_of(rows, "method", "k", metric), "k", f"{label}, shifted sets")


ANALYSIS = Analysis("how many classes of each view does the network need?", compute, draw)
