"""Which views, and how many; and retrieval, where near samples of the batch stand in for views.

All combinations of the paper's five views that are stored, each further view alone, and all.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import rightly
from analyses.described import Analysis, Context, Row, Table, fitted, means, measured
from analyses.drawing import finished
from rightly.calibrators.learned_temperature import LearnedTemperature

LETTERS = {
    "rotation": "R",
    "grayscale": "S",
    "color_jitter": "C",
    "random_erasing": "E",
    "gaussian_noise": "G",
}  # as the paper's figure has them
METRICS = ("ece", "brier", "ks", "auroc")
CONTROLS = ("uncalibrated", "temperature_scaling", "ca_only")


def compute(context: Context) -> list[Table]:
    rows: list[Row] = []
    for name, trial in context.trials(every_view=True):
        context.advance(name)
        for title, count, calibrator in calibrators(trial.calibration):
            chosen = calibrator.view_names
            for test, (predictions, labels) in trial.tests.items():
                seen = predictions.with_views(chosen) if chosen else predictions
                values = measured(calibrator, (seen, labels), METRICS)
                rows.append({"views": title, "count": count, "on": context.kind(test), **values})
    return [Table("views", means(rows, ("views", "count", "on"), METRICS))]


def calibrators(data: Any) -> Iterator[tuple[str, int, rightly.Calibrator]]:
    """What to compare: title, number of views, fitted calibrator."""
    predictions, labels = data
    for method in CONTROLS:
        yield method, 0, fitted(method, data)
    retrieval = LearnedTemperature("retrieved_scores", "correctness_aware")
    yield "retrieval", 0, retrieval.fit(predictions, labels)
    known = [name for name in LETTERS if name in predictions.view_names]
    groups = [group for size in range(1, 6) for group in combinations(known, size)]
    groups += [(name,) for name in predictions.view_names if name not in LETTERS]
    if len(predictions.view_names) > len(known):
        groups.append(predictions.view_names)
    for group in groups:
        title = "".join(LETTERS.get(name, f"{name} ") for name in group).strip()
        if len(group) > len(LETTERS):
            title = "all"
        calibrator = LearnedTemperature("view_scores", "correctness_aware")
        yield title, len(group), calibrator.fit(predictions.with_views(group), labels)


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = [row for row in tables[0].rows if row["on"] == "shifted"]
    for ax, metric, label in zip(axes, ("ece", "auroc"), ("ECE (%)", "AUROC (%)"), strict=True):
        for row in rows:
            if row["count"]:
                ax.plot(row["count"], row[metric], "o", ms=3, color="#0072B2")
                place = (row["count"] + 0.06, row[metric])
                ax.annotate(row["views"], place, fontsize=5, va="center")
        for row, style in zip(
            (row for row in rows if not row["count"]), (":", "-.", "--", "-"), strict=False
        ):
            ax.axhline(row[metric], ls=style, lw=1, color="#444444", label=row["views"])
        finished(ax, "views", f"{label}, shifted sets")


ANALYSIS = Analysis("which views tell right from wrong, and how many are enough?", compute, draw)
