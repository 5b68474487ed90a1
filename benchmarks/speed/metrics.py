"""What five metrics of many pairs cost together, in sorts of the confidences alone.

    python -m benchmarks.speed.metrics [--samples 100000 1000000 10000000]

Printed are seconds of processor time, the best of some runs, and beside them how many np.sort of
the same array in the same process they are. 10,000,000 pairs need about half a GB.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.speed.peers import build_metrics
from rightly.metrics import METRICS, measure_all

TABLE = ("ece", "ace", "brier", "ks", "auroc")
TARGET = 4  # np.sorts, together


def time_best(work: Callable[[], object], runs: int) -> float:
    """Seconds of processor time: other processes on a shared machine do not count."""
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def print_row(title: str, taken: float, sort: float, target: float | None = None) -> None:
    missed = "MISSED" if target is not None and taken > target * sort else ""
    wanted = "" if target is None else f"{target:g}"
    print(
        f"  {title:28} {taken:9.4f} {taken / sort:8.2f} {wanted:>7} {missed}".rstrip(), flush=True
    )


def print_speed(n: int, dtype: type, runs: int) -> None:
    """Seconds and np.sorts of the metrics together, each alone, and of peers that are installed."""
    rng = np.random.default_rng(0)
    confidence = (1 - 0.75 * rng.beta(1, 3, n)).astype(dtype)
    correct = rng.random(n) < 0.95 * confidence
    sort = time_best(lambda: np.sort(confidence), runs)
    print(f"{n:,} pairs, {confidence.dtype}: seconds, np.sorts, target")
    print_row("np.sort", sort, sort)
    together = time_best(lambda: measure_all(confidence, correct, TABLE), runs)
    print_row("together", together, sort, TARGET)
    for name in TABLE:
        alone = time_best(lambda name=name: METRICS[name].measure(confidence, correct), 2)
        print_row(f"{name} alone", alone, sort)
    for name, work in build_metrics(confidence, correct).items():
        print_row(name, time_best(work, 2), sort)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    for n in options.samples:
        for dtype in (np.float32, np.float64):
            print_speed(n, dtype, options.runs)


if __name__ == "__main__":
    main()
