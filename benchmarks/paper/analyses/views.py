"""Which views, and how many; and retrieval, where near samples of the batch stand in for views.

All combinations of the paper's five views, as far as they are stored; further views alone, in
pairs and together; and all.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import rightly
from benchmarks.paper.analyses.analysis import (
    Analysis,
    Context,
    Row,
    Table,
    average_rows,
    fit_method,
    measure_percent,
)
from benchmarks.paper.analyses.drawing import SMALL, finish_axes
from rightly.calibrators.temperature_network import TemperatureNetwork
from rightly.reporting.figures.style import BLUE, GREY, VERMILION

LETTERS = {
    "rotation": "R",
    "grayscale": "S",
    "color_jitter": "C",
    "random_erasing": "E",
    "gaussian_noise": "G",
}  # as the paper's figure has them
PAPERS = "R+S+C"
METRICS = ("ece", "brier", "ks", "auroc")
CONTROLS = ("uncalibrated", "temperature_scaling", "ca_only")


def compute(context: Context) -> list[Table]:
    rows: list[Row] = []
    for name, trial in context.trials(every_view=True):
        context.advance(name)
        for title, count, calibrator in build_calibrators(trial.calibration):
            names = calibrator.view_names
            for test, (predictions, labels) in trial.tests.items():
                subset = predictions.with_views(names) if names else predictions
                values = measure_percent(calibrator, (subset, labels), METRICS)
                rows.append({"views": title, "count": count, "on": context.kind(test), **values})
    return [Table("views", average_rows(rows, ("views", "count", "on"), METRICS))]


def build_calibrators(data: Any) -> Iterator[tuple[str, int, rightly.Calibrator]]:
    """Title, number of views and fitted calibrator of all that is compared."""
    predictions, labels = data
    for method in CONTROLS:
        yield method, 0, fit_method(method, data)
    retrieval = TemperatureNetwork("retrieved_scores", "correctness_aware")
    yield "retrieval", 0, retrieval.fit(predictions, labels)
    papers = [name for name in LETTERS if name in predictions.view_names]
    groups = [group for size in range(1, 6) for group in combinations(papers, size)]
    further = [name for name in predictions.view_names if name not in LETTERS]
    for size in {1, 2, len(further)} if further else ():
        groups += combinations(further, size)
    if further and papers:
        groups.append(predictions.view_names)
    for group in groups:
        title = "+".join(LETTERS.get(name, name) for name in group)
        if group == predictions.view_names:
            title = "all"
        calibrator = TemperatureNetwork("view_scores", "correctness_aware")
        yield title, len(group), calibrator.fit(predictions.with_views(group), labels)


def draw(tables: Sequence[Table], axes: Any) -> None:
    panels = (("brier", "shifted"), ("auroc", "shifted"), ("auroc", "in distribution"))
    for ax, (metric, on) in zip(axes, panels, strict=True):
        rows = [row for row in tables[0].rows if row["on"] == on]
        with_views = [row for row in rows if row["count"]]
        values = sorted(row[metric] for row in with_views)
        for row in with_views:
            further = not set(row["views"].split("+")) <= set(LETTERS.values())
            ax.plot(
                row["count"],
                row[metric],
                "s" if further else "o",
                ms=4,
                mew=0,
                alpha=0.7,
                color=VERMILION if further else BLUE,
            )
            if row["views"] == PAPERS or row[metric] in (values[0], values[-1]):
                ax.annotate(
                    row["views"],
                    (row["count"], row[metric]),
                    (6, 0),
                    textcoords="offset points",
                    fontsize=SMALL,
                    va="center",
                )
        styles = {"temperature_scaling": "-.", "ca_only": "--", "retrieval": "-"}
        for row in rows:
            if row["views"] in styles:
                ax.axhline(
                    row[metric], ls=styles[row["views"]], lw=0.8, color=GREY, label=row["views"]
                )
        name = {"brier": "Brier (%)", "auroc": "AUROC (%)"}[metric]
        finish_axes(ax, "views (blue: of the paper's five)", f"{name}, {on}")


ANALYSIS = Analysis(
    "which views tell right from wrong, and how many are enough?",
    compute,
    draw,
    panels=3,
    height=2.6,
)
