"""How long intervals take, and how often they cover.

    python -m benchmarks.speed.intervals [--samples 10000] [--resamples 1000] [--classes 10]
    python -m benchmarks.speed.intervals --coverage

Speed: all metrics of one method on all resamples, against a plain loop that copies samples and
calls each metric, timed in the same process on a few resamples. Coverage: test sets drawn again
and again from a known law; the share of 95 % intervals that hold the metric's expected value on a
test set of that size, for samples redrawn freely and with the number of right ones held fixed,
and for the interval as it is and as plain percentiles; and the share that hold the value of another
test set, which is lower, since both vary.
"""

import argparse
import time

import numpy as np

from rightly.metrics import METRICS, Outcomes
from rightly.metrics.bootstrap import noise_floor, replicate_metrics
from rightly.resampling import draw_resamples, interval

TABLE = ("ece", "brier", "ks", "auroc")


def build_outcomes(n: int, c: int, seed: int = 0) -> Outcomes:
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(c, 2 / c), n)
    labels = (rng.random((n, 1)) > probabilities.cumsum(-1)).sum(-1).clip(0, c - 1)
    confidence = probabilities.max(-1)
    return Outcomes(confidence, probabilities.argmax(-1) == labels, probabilities, labels)


def time_plain_loop(outcomes: Outcomes, name: str, counts: np.ndarray) -> float:
    """Seconds a resample takes when samples are copied and the metric called."""
    start = time.process_time()
    for row in counts:
        rows = np.repeat(np.arange(len(row)), row)
        first, second = outcomes.inputs(METRICS[name].inputs)
        METRICS[name].measure(first[rows], second[rows])
    return (time.process_time() - start) / len(counts)


def print_speed(n: int, resamples: int, c: int) -> None:
    outcomes = build_outcomes(n, c)
    start = time.process_time()
    drawn = draw_resamples(n, resamples)
    print(f"{resamples} resamples of {n} samples, {c} classes")
    print(f"{'':16} {'seconds':>8} {'plain loop':>11} {'ratio':>8}")
    print(f"{'drawing':16} {time.process_time() - start:8.2f}")
    few = drawn[0][:5]
    for name in METRICS:
        time_plain_loop(outcomes, name, few[:1])  # the first call may load a library
    loops = {}
    for name in METRICS:
        loop = loops[name] = time_plain_loop(outcomes, name, few) * resamples
        start = time.process_time()
        replicate_metrics(outcomes, [name], drawn)
        taken = time.process_time() - start
        print(f"{name:16} {taken:8.2f} {loop:11.1f} {loop / taken:8.0f}")
    for title, names in (("the table's 4", TABLE), ("all", tuple(METRICS))):
        start = time.process_time()
        replicate_metrics(outcomes, names, drawn)
        taken, loop = time.process_time() - start, sum(loops[name] for name in names)
        print(f"{title:16} {taken:8.2f} {loop:11.1f} {loop / taken:8.0f}")
    start = time.process_time()
    noise_floor(outcomes.confidence, resamples)
    print(f"{'noise floor':16} {time.process_time() - start:8.2f}")


def print_coverage(n: int = 1000, runs: int = 300, resamples: int = 400) -> None:
    metrics = [name for name, metric in METRICS.items() if metric.inputs == "confidence"]
    print(f"{n} samples, {runs} test sets, {resamples} resamples each; share that covers, in %")
    print(f"{'':16} {'':>10} {'as it is':>9} {'fixed':>9} {'percentile':>11} {'another':>8}")
    for title, excess in (("calibrated", 0.0), ("10 % too sure", 0.1)):
        rng = np.random.default_rng(1)

        def draw_outcomes(rng: np.random.Generator = rng, excess: float = excess) -> Outcomes:
            confidence = 1 - 0.75 * rng.beta(1, 3, n)
            return Outcomes(confidence, rng.random(n) < (1 - excess) * confidence)

        def measure(outcomes: Outcomes) -> dict[str, float]:
            pair = outcomes.confidence, outcomes.correct
            return {name: METRICS[name].measure(*pair) for name in metrics}

        many = [measure(draw_outcomes()) for _ in range(1500)]
        expected = {name: np.mean([one[name] for one in many]) for name in metrics}
        hits = {name: np.zeros(4) for name in metrics}
        for run in range(runs):
            outcomes = draw_outcomes()
            measured, another = measure(outcomes), many[run]
            free = replicate_metrics(outcomes, metrics, draw_resamples(n, resamples, run))
            strata = outcomes.correct.astype(np.int64)
            fixed = replicate_metrics(outcomes, metrics, draw_resamples(n, resamples, run, strata))
            for name in metrics:
                ends = [interval(measured[name], x[name]) for x in (free, fixed)]
                ends.append(tuple(np.quantile(free[name], [0.025, 0.975])))
                covered = [low <= expected[name] <= high for low, high in ends]
                hits[name] += [*covered, ends[0].low <= another[name] <= ends[0].high]
        print(title)
        for name in metrics:
            shares = 100 * hits[name] / runs
            print(
                f"  {name:25} {shares[0]:9.0f} {shares[1]:9.0f} {shares[2]:11.0f} {shares[3]:8.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        print_coverage()
    else:
        print_speed(options.samples, options.resamples, options.classes)


if __name__ == "__main__":
    main()
