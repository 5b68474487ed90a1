"""Drift alarms on held-out predictions: false ones a year, and how soon each shift is noticed.

    python -m benchmarks.own.drift_alarms PREDICTIONS [--methods temperature_scaling,rightly] \
        [--classifiers all] [--samples-per-day 1000] [--years 20]
    python -m benchmarks.own.drift_alarms --simulated-classes 1000 [--calibration 1000] [--years 4]

PREDICTIONS/CLASSIFIER/{cal,ind,SHIFT}.npz as for evaluate_own. Limits come from cal, years are of
ind, which nothing was fitted on: as it is and with skewed class priors (a random prior each
month); each shift is run from its first sample on. One alarm a year is promised, for both names
together. Eight simulated classifiers show what many classes with few calibration samples do.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit

import rightly
from benchmarks.own.targets import list_classifiers
from rightly.calibrators.drift_reference import (
    SKEW,
    ScoredRows,
    learn_drift_reference,
    measure_agreement,
)
from rightly.calibrators.shift_adaptation import score_shift
from rightly.evaluation.data_sets import load_data_set
from rightly.monitoring.drift import (
    PRIOR_SHIFT,
    SHIFT,
    Alarm,
    DriftPlan,
    Reference,
    SequentialTest,
    plan_blocks,
)
from rightly.monitoring.limits import find_limits

STARTS, MOST = 40, 5000  # streams of each shift, and samples until one counts as missed
SIMULATED = 8  # classifiers
MIXES, MONTH = 24, 30  # skewed class priors, and days of each

Rows = tuple[np.ndarray, np.ndarray]  # described, and labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions", type=Path, nargs="?")
    parser.add_argument("--methods", default="temperature_scaling,rightly")
    parser.add_argument("--classifiers", default="all")
    parser.add_argument("--samples-per-day", type=float, default=1000.0)
    parser.add_argument("--years", type=int, default=20)
    parser.add_argument("--simulated-classes", type=int, help="in place of predictions")
    parser.add_argument("--calibration", type=int, default=1000, help="simulated samples")
    options = parser.parse_args()
    if options.simulated_classes:
        print("| simulated classifier | false alarms a year: shift, class prior |\n|---|---|")
        for seed in range(SIMULATED):
            print(f"| {seed + 1} | {simulate(seed, options)} |", flush=True)
        return
    if options.predictions is None:
        parser.error("give PREDICTIONS or --simulated-classes")
    names = list_classifiers(options.predictions, options.classifiers)
    print(
        "| classifier | method | false alarms a year: shift, class prior | with skewed priors: "
        "shift a year, mixes noticed | samples until half of the streams alarm: each shift |"
    )
    print("|---|---|---|---|---|")
    for name in names:
        for method in options.methods.split(","):
            print(f"| {name} | {method} | {measure(name, method, options)} |", flush=True)


def measure(name: str, method: str, options: argparse.Namespace) -> str:
    """The cells of one calibrator."""
    folder, rng = options.predictions / name, np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cal = load_data_set(folder / "cal.npz")
        fitted = rightly.calibrator(method).fit(*cal).learn_shift(*cal)
    assert fitted.shift is not None
    reference, has_views = Reference.of(fitted.shift.describe_drift()), bool(fitted.view_names)
    plan = plan_blocks(reference, options.samples_per_day, has_views)
    plan = find_limits(reference, plan, has_agreement=has_views)

    def describe(path: Path) -> Rows:
        predictions, labels = load_data_set(path)
        predictions, classes = fitted.select_views(predictions), fitted.classes(predictions)
        agreement = measure_agreement(fitted, predictions, classes).numpy()
        scores = score_shift(fitted, predictions)[0].numpy()
        shown = agreement if has_views else None
        return reference.describe(classes.numpy(), scores, shown), labels.numpy()

    ind = describe(folder / "ind.npz")
    steps = round(365 * options.samples_per_day / plan.block)
    years = [alarm for _ in range(options.years) for alarm in run(plan, ind, steps, rng)]
    months = round(MONTH * options.samples_per_day / plan.block)
    mixed = [list(run(plan, ind, months, rng, skew(ind[1], rng))) for _ in range(MIXES)]
    shifts = sum(alarm.name == SHIFT for alarms in mixed for alarm in alarms)
    noticed = sum(any(alarm.name == PRIOR_SHIFT for alarm in alarms) for alarms in mixed)
    counts = [sum(alarm.name == one for alarm in years) for one in (SHIFT, PRIOR_SHIFT)]
    delays = [
        f"{path.stem} {find_delay(plan, describe(path), rng)}"
        for path in sorted(folder.glob("*.npz"))
        if path.stem not in ("cal", "ind")
    ]
    return (
        f"{counts[0] / options.years:.2f}, {counts[1] / options.years:.2f} | "
        f"{shifts * 365 / (MIXES * MONTH):.2f}, {noticed} of {MIXES} | {', '.join(delays)}"
    )


def simulate(seed: int, options: argparse.Namespace) -> str:
    """False alarms of a simulated classifier: classes differ in level and in what they are
    confused with."""
    rng = np.random.default_rng(seed)
    count = options.simulated_classes
    level, confused = rng.normal(1.5, 1, count), rng.integers(count, size=(count, 3))

    def draw(n: int) -> ScoredRows:
        label = rng.integers(count, size=n)
        s = level[label] + 1.5 * rng.normal(size=n)
        wrong = confused[label, rng.integers(3, size=n)]
        predicted = np.where(rng.random(n) < expit(s), label, wrong)
        return ScoredRows(s, predicted, label, np.arange(n), np.ones(n))

    drift = learn_drift_reference(draw(options.calibration), count)
    reference = Reference.of({**drift.arrays(), "reference": np.zeros(count)})
    plan = find_limits(reference, plan_blocks(reference, options.samples_per_day))
    steps, alarms = round(365 * options.samples_per_day / plan.block), []
    for _ in range(options.years):
        year = draw(steps * plan.block)
        described = reference.describe(year.predicted, year.score, None)
        test = SequentialTest(plan)
        for block in np.split(described, steps):
            alarms += test.update(block)
    counts = [sum(alarm.name == one for alarm in alarms) for one in (SHIFT, PRIOR_SHIFT)]
    return f"{counts[0] / options.years:.2f}, {counts[1] / options.years:.2f}"


def run(
    plan: DriftPlan,
    rows: Rows,
    steps: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> Iterator[Alarm]:
    """The alarms of a stream of blocks drawn from rows."""
    test = SequentialTest(plan)
    cumulated = None if weights is None else weights.cumsum()
    for _ in range(steps):
        if cumulated is None:
            drawn = rng.integers(len(rows[0]), size=plan.block)
        else:
            drawn = np.searchsorted(cumulated, rng.random(plan.block) * cumulated[-1])
        yield from test.update(rows[0][drawn])


def skew(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights of rows so that the classes have random shares."""
    count = np.bincount(labels)
    share = rng.dirichlet(np.full(len(count), SKEW))
    weights: np.ndarray = (share / np.maximum(count, 1))[labels]
    return weights


def find_delay(plan: DriftPlan, rows: Rows, rng: np.random.Generator) -> str:
    """Median number of samples until a shift alarm, and how many streams had none."""
    delays = []
    for _ in range(STARTS):
        alarms = run(plan, rows, MOST // plan.block, rng)
        delays.append(next((alarm.at for alarm in alarms if alarm.name == SHIFT), MOST + 1))
    missed = sum(delay > MOST for delay in delays)
    return f"{np.median(delays):.0f}" + (f" ({missed} of {STARTS} missed)" if missed else "")


if __name__ == "__main__":
    main()
