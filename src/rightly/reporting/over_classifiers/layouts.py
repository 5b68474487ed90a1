"""A benchmark as tables: means over classifiers with ranks, and tests beside a reference."""

import math
from collections.abc import Callable, Sequence

from rightly.evaluation.over_classifiers.method_tests import MethodTest, MetricTest
from rightly.evaluation.over_classifiers.significance import min_classifiers
from rightly.evaluation.over_classifiers.value_grid import FEWEST, MEAN, MeanResult
from rightly.evaluation.results import SIGNIFICANT, Result, unique
from rightly.metrics import METRICS
from rightly.reporting import formatting
from rightly.reporting.formatting import (
    BETTER,
    NOT_AVAILABLE,
    REFERENCE,
    SAME,
    WITHIN_NOISE,
    WORSE,
    format_heading,
)
from rightly.reporting.layout import Cell, Column, Layout

RANKS = "mean rank"


def lay_out_means(
    rows: Sequence[MeanResult], classifiers: Sequence[str], notes: Sequence[str]
) -> Layout:
    """Rows are methods; columns metrics in groups of test sets, the floor beside ECE, and ranks."""
    names = unique(row.calibrator for row in rows)
    datasets, metrics = unique(row.dataset for row in rows), unique(row.metric for row in rows)
    at = {row[:3]: row for row in rows}
    columns = []
    for dataset in datasets:
        for metric in metrics:
            of_column = [at[name, dataset, metric] for name in names]
            best = formatting.find_best(metric, (row.mean for row in of_column))
            cells = [_lay_out_mean(row, best, len(classifiers)) for row in of_column]
            columns.append(Column(format_heading(metric), cells, dataset))
            if metric == "ece":
                floors = [Cell(formatting.format_number("ece", row.floor)) for row in of_column]
                columns.append(Column("floor", floors, dataset))
    for metric in metrics:
        if METRICS[metric].lower_is_better is not None:
            ranks = [at[name, datasets[-1], metric].rank for name in names]
            columns.append(Column(metric, _lay_out_ranks(ranks), RANKS))
    return Layout("method", names, columns, notes=notes, stacks_intervals=True)


def _lay_out_mean(row: MeanResult, best: float, classifiers: int) -> Cell:
    shown = Result(row.calibrator, row.dataset, row.metric, row.mean, 0, row.low, row.high)
    text = formatting.format_value(shown)
    flag = WITHIN_NOISE if row.within_noise == classifiers else ""
    return Cell(text, formatting.format_interval(shown), flag=flag, is_best=row.mean == best)


def _lay_out_ranks(ranks: Sequence[float]) -> list[Cell]:
    best = min((rank for rank in ranks if not math.isnan(rank)), default=math.nan)
    return [
        Cell(NOT_AVAILABLE if math.isnan(rank) else f"{rank:.2f}", is_best=rank == best)
        for rank in ranks
    ]


def describe_means(
    rows: Sequence[MeanResult], classifiers: Sequence[str], resamples: int, seed: int
) -> list[str]:
    """What the numbers mean, and what one classifier cannot tell."""
    metrics = unique(row.metric for row in rows)
    units = formatting.format_units(metrics)
    of_sets = rows[-1].dataset == MEAN
    ranked = f"in the {MEAN}" if of_sets else f"on {rows[-1].dataset}"
    if len(classifiers) == 1:
        notes = [
            f"One classifier, {classifiers[0]}: values {units}, ranks are its own ({ranked}). "
            "Without a second one there are no intervals and no tests over classifiers."
        ]
    else:
        intervals = (
            f"with 95 % intervals from {resamples} resamples of the classifiers, seed {seed}: "
            "what other classifiers like these would give"
        )
        if len(classifiers) < FEWEST:
            intervals = f"without intervals, which need {FEWEST}"
        notes = [
            f"Means over {len(classifiers)} classifiers ({', '.join(classifiers)}), {units}, "
            f"{intervals}. Ranks within classifiers, {ranked}, from 1, the best, on; ties share "
            "their mean."
        ]
    if "ece" in metrics:
        notes.append(
            "floor: the ECE that the method would have on average if it were perfectly calibrated; "
            f"{WITHIN_NOISE} marks an ECE that for every classifier is below what noise alone "
            "reaches 95 times in 100."
        )
    return notes


def lay_out_tests(
    rows: Sequence[MethodTest], metrics: Sequence[MetricTest], reference: str, rope: float
) -> Layout:
    """Rows are methods; columns rank, difference, p and probabilities in groups of metrics."""
    names = unique(row.calibrator for row in rows)
    at = {row[:2]: row for row in rows}
    columns = []
    for test in metrics:
        of_metric = [at[name, test.metric] for name in names]
        columns.append(Column("rank", _lay_out_ranks([one.rank for one in of_metric]), test.metric))
        for heading, write in COLUMNS.items():
            cells = [
                Cell("", mark=REFERENCE if heading == "change" else "")
                if one.calibrator == reference
                else write(one)
                for one in of_metric
            ]
            columns.append(Column(heading, cells, test.metric))
    group_notes = {test.metric: [_describe_metric(test)] for test in metrics}
    notes = [
        *(note for lines in group_notes.values() for note in lines),
        f"change: the mean over classifiers less that of {reference} ({REFERENCE}), {BETTER} "
        f"better and {WORSE} worse at {100 * SIGNIFICANT:.0f} %, {SAME} no detectable difference: "
        "Wilcoxon's signed-rank test over classifiers, p corrected by Holm over methods. "
        "better, same, worse: probabilities of the Bayesian signed-rank test; same is a "
        f"difference of at most {100 * rope:g} points (of metrics not in %, {rope:g}).",
        *_describe_power(len(names) - 1, max(test.classifiers for test in metrics)),
    ]
    return Layout("method", names, columns, notes=notes)


def _write_change(test: MethodTest) -> Cell:
    change = Result(test.calibrator, "", test.metric, test.difference, 0, p_holm=test.p_holm)
    return Cell(formatting.format_change(change), mark=formatting.mark_change(change))


def _write_p(test: MethodTest) -> Cell:
    return Cell(NOT_AVAILABLE if math.isnan(test.p_holm) else f"{test.p_holm:.3f}")


COLUMNS: dict[str, Callable[[MethodTest], Cell]] = {
    "change": _write_change,
    "p": _write_p,
    "better": lambda test: Cell(f"{test.better:.2f}"),
    "same": lambda test: Cell(f"{test.same:.2f}"),
    "worse": lambda test: Cell(f"{test.worse:.2f}"),
}


def _describe_metric(test: MetricTest) -> str:
    differ = "methods differ" if test.p <= SIGNIFICANT else "no detectable difference of methods"
    return (
        f"{test.metric}, {test.classifiers} classifiers: {differ} (Friedman, chi squared "
        f"{test.statistic:.1f}, p {test.p:.4f} by permutation); two of them do if their ranks are "
        f"more than {test.critical_difference:.2f} apart (Nemenyi, 5 %)."
    )


def _describe_power(tests: int, classifiers: int) -> list[str]:
    needed = min_classifiers(tests, SIGNIFICANT)
    if classifiers >= needed:
        return []
    return [
        f"With {classifiers} classifiers and {tests} tests no p can pass 5 %, however large the "
        f"difference: {needed} classifiers could, or fewer methods."
    ]
