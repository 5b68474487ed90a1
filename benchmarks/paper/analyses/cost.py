"""What training and inference cost, method by method.

Seconds to fit and microseconds a sample to score, the best of three turns on the first classifier;
the machine may be shared, so each is also given as a ratio to one softmax-and-max pass over the
same logits. What views cost comes on top: one more forward pass of the classifier for each.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import rightly
from analyses.described import Analysis, Context, Row, Table, fitted
from analyses.drawing import bars

TURNS = 3


def compute(context: Context) -> list[Table]:
    name, trial = next(context.trials())
    predictions, labels = trial.calibration
    test, _ = next(iter(trial.tests.values()))
    pass_over = best_of(lambda: predictions.logits.softmax(-1).max(-1))
    rows: list[Row] = []
    for method in rightly.CALIBRATORS:
        context.advance(f"{name}: {method}")
        needs = rightly.CALIBRATORS[method].needs
        if any(getattr(predictions, need) is None for need in needs):
            context.say(f"skipped: {method}, for want of {', '.join(needs)}")
            continue
        calibrator = fitted(method, trial.calibration)
        fit = best_of(lambda method=method: fitted(method, trial.calibration))
        score = best_of(lambda calibrator=calibrator: calibrator.confidence(test))
        views = len(predictions.view_names) if "view_logits" in needs else 0
        rows.append(
            {
                "method": method,
                "fit, s": fit,
                "fit / softmax pass": fit / pass_over,
                "score, µs a sample": 1e6 * score / len(test),
                "learned numbers": sum(t.numel() for t in calibrator.learned().values()),
                "forward passes an image": 1 + views,
            }
        )
    context.say(
        f"{name}: {len(labels)} x {predictions.class_count}, one softmax-and-max pass "
        f"{1e3 * pass_over:.2f} ms"
    )
    return [Table("cost", rows)]


def best_of(work: Callable[[], object]) -> float:
    found = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def draw(tables: Sequence[Table], axes: Any) -> None:
    for ax, column in zip(axes, ("fit, s", "score, µs a sample"), strict=True):
        bars(ax, {row["method"]: row[column] for row in tables[0].rows}, column)
        ax.set_xscale("log")


ANALYSIS = Analysis("what does each method cost to train and to use?", compute, draw)
