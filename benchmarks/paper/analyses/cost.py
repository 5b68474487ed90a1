"""What training and inference cost, method by method.

Seconds to fit and microseconds a sample to score, the best of three turns on the first classifier;
the machine may be shared, so each is also shown as a ratio to one softmax-and-max pass over the
same logits. What views cost comes on top: one more forward pass of the classifier for each.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.paper.analyses.analysis import Analysis, Context, Row, Table, fit_method
from benchmarks.paper.analyses.drawing import draw_bars
from benchmarks.paper.gathering import METHODS
from rightly.calibrators import CALIBRATORS

TURNS = 3


def compute(context: Context) -> list[Table]:
    name, trial = next(context.trials())
    predictions, labels = trial.calibration
    test, _ = next(iter(trial.tests.values()))
    pass_over = time_best(lambda: predictions.logits.softmax(-1).max(-1))
    rows: list[Row] = []
    for method in METHODS:
        context.advance(f"{name}: {method}")
        needs = CALIBRATORS[method].needs
        if any(getattr(predictions, need) is None for need in needs):
            context.notify(f"skipped: {method} needs {', '.join(needs)}")
            continue
        calibrator = fit_method(method, trial.calibration)
        fit = time_best(lambda method=method: fit_method(method, trial.calibration))
        score = time_best(lambda calibrator=calibrator: calibrator.confidence(test))
        views = len(predictions.view_names) if "view_logits" in needs else 0
        rows.append(
            {
                "method": method,
                "fit, s": fit,
                "fit / softmax pass": fit / pass_over,
                "score, µs a sample": 1e6 * score / len(test),
                "learned numbers": sum(t.numel() for t in calibrator.stored().values()),
                "forward passes per image": 1 + views,
            }
        )
    context.notify(
        f"{name}: {len(labels)} x {predictions.class_count}, one softmax-and-max pass "
        f"{1e3 * pass_over:.2f} ms"
    )
    return [Table("cost", rows)]


def time_best(work: Callable[[], object]) -> float:
    """Seconds of the best of a few turns."""
    seconds = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def draw(tables: Sequence[Table], axes: Any) -> None:
    for ax, column in zip(axes, ("fit, s", "score, µs a sample"), strict=True):
        draw_bars(ax, {row["method"]: row[column] for row in tables[0].rows}, column)
        ax.set_xscale("log")


ANALYSIS = Analysis("what does each method cost to train and to use?", compute, draw, height=4.2)
