"""How much of the released code's gain is lowered confidence.

The released code weights right and wrong samples alike, which lowers every confidence.
`balanced_temperature` does only that: one temperature under the same weights, no network, no
views. Where the two agree, nothing was learned about which samples are right. Also: what happens
as the test set's accuracy falls (right and wrong samples of all shifted sets, mixed anew), and
what the released recipe (10 epochs, clamped output) makes of ten seeds.
"""

from collections.abc import Sequence
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
    mix_to_accuracy,
    pool,
)
from benchmarks.paper.analyses.drawing import draw_lines, group_series
from benchmarks.paper.analyses.table_values import complete_values
from benchmarks.paper.gathering import Labelled

METHODS = (
    "uncalibrated",
    "temperature_scaling",
    "ca_views",
    "balanced_temperature",
    "ca_balanced_views",
    "ca_views_released",
)
METRICS = ("accuracy", "mean_confidence", "ece", "brier", "ks", "ks_released", "auroc")
ACCURACIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SEEDS = 10


def compute(context: Context) -> list[Table]:
    values = complete_values(context, METHODS, METRICS)
    rows = [
        {"method": method, "on": context.kind(test)}
        | {metric: 100 * values[method, metric][classifier, test] for metric in METRICS}
        for method in METHODS
        for classifier, test in values[method, "ece"]
    ]
    mixed, released = [], []
    for name, trial in context.trials():
        context.advance(name)
        shifted = [data for test, data in trial.tests.items() if context.kind(test) == "shifted"]
        everything = pool(shifted)
        calibrators = {method: fit_method(method, trial.calibration) for method in METHODS}
        for accuracy in ACCURACIES:
            data = mix_to_accuracy(everything, accuracy)
            for method, calibrator in calibrators.items():
                values_at = measure_percent(calibrator, data, ("ece", "brier", "ks_released"))
                mixed.append({"method": method, "mixed to accuracy": 100 * accuracy, **values_at})
        released += [
            measure_seed(name, trial.calibration, everything, seed) for seed in range(SEEDS)
        ]
    return [
        Table("methods", average_rows(rows, ("method", "on"), METRICS)),
        Table(
            "accuracy",
            average_rows(mixed, ("method", "mixed to accuracy"), ("ece", "brier", "ks_released")),
        ),
        Table("released", released),
    ]


def measure_seed(name: str, calibration: Labelled, shifted: Labelled, seed: int) -> Row:
    """Temperatures and metrics of one seed of the released recipe."""
    calibrator = fit_method("ca_views_released", calibration, seed)
    temperature = calibrator.temperature(calibration[0])
    untrained = rightly.calibrator("ca_views_released", epochs=0, seed=seed)
    start = untrained.fit(*calibration).temperature(calibration[0])
    return {
        "classifier": name,
        "seed": seed,
        "share at the clamp of 0.1": 100 * float((temperature <= 0.1 + 1e-9).double().mean()),
        "mean T before": float(start.mean()),
        "mean T after": float(temperature.mean()),
        **measure_percent(calibrator, shifted, ("mean_confidence", "ece", "brier", "auroc")),
    }


def draw(tables: Sequence[Table], axes: Any) -> None:
    rows = [row for row in tables[1].rows if row["method"] != "ca_views_released"]
    for ax, metric, label in zip(axes, ("ece", "brier"), ("ECE (%)", "Brier (%)"), strict=True):
        series = group_series(rows, "method", "mixed to accuracy", metric)
        draw_lines(ax, series, "accuracy of the test set (%)", label)


ANALYSIS = Analysis("how much of the gain is lowered confidence?", compute, draw)
