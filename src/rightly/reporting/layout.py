"""Tables before they are drawn: cells with values, intervals and marks, for every renderer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rightly.evaluation.ranking import (
    FEWEST,
    MEAN,
    MeanResult,
    MethodTest,
    MetricTest,
    min_classifiers,
)
from rightly.evaluation.results import SIGNIFICANT, Result, average_seeds, count, unique
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
from rightly.reporting.set_notes import describe_sets

if TYPE_CHECKING:
    from rightly.evaluation.benchmark import Benchmark
    from rightly.evaluation.compare import Comparison
    from rightly.evaluation.evaluate import Evaluation
    from rightly.evaluation.selection import MethodChoice
    from rightly.evaluation.views import ViewCost, ViewGain


@dataclass(frozen=True)
class Cell:
    """One value as it is shown."""

    text: str
    interval: str = ""
    mark: str = ""
    flag: str = ""  # directly behind the value
    is_best: bool = False

    @property
    def is_missing(self) -> bool:
        return self.text == NOT_AVAILABLE


@dataclass(frozen=True)
class Column:
    """A heading, the group of columns it stands in, such as a test set, and its cells."""

    heading: str
    cells: Sequence[Cell]
    group: str = ""


@dataclass(frozen=True)
class Layout:
    """Named rows, columns in groups, and notes on one group or on all."""

    corner: str  # heading of the names of rows
    names: Sequence[str]
    columns: Sequence[Column]
    group_notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    stacks_intervals: bool = False  # in LaTeX, which has none otherwise: below the values

    @property
    def groups(self) -> list[str]:
        return unique(column.group for column in self.columns)

    def select(self, groups: Iterable[str]) -> "Layout":
        """The columns of some groups."""
        chosen = list(groups)
        columns = [column for column in self.columns if column.group in chosen]
        return Layout(self.corner, self.names, columns, self.group_notes)


def lay_out_comparison(comparison: "Comparison") -> Layout:
    """Rows are calibrators, columns metrics in groups of test sets; with tests if there are any."""
    results, names, metrics = comparison.results, comparison.methods, comparison.metrics
    reference = comparison.reference
    means = average_seeds(results)
    columns: list[Column] = []
    notes: dict[str, list[str]] = {}
    for dataset in comparison.datasets:
        here = [row for row in results if row.dataset == dataset]
        notes[dataset] = [] if reference is None else formatting.describe_floor(here, reference)
        for metric in metrics:
            best = formatting.find_best(
                metric, (mean for key, mean in means.items() if key[1:] == (dataset, metric))
            )
            cells = [
                _lay_out_value(
                    [row for row in here if (row.calibrator, row.metric) == (name, metric)],
                    means.get((reference or "", dataset, metric)),
                    best,
                )
                for name in names
            ]
            if reference is not None:
                at = names.index(reference)
                cells[at] = replace(cells[at], mark=REFERENCE)
                marks = [cell.mark for cell in cells]
                notes[dataset] += [formatting.describe_tests(metric, marks, reference)]
            columns.append(Column(format_heading(metric), cells, dataset))
    group_notes = {name: [line for line in lines if line] for name, lines in notes.items()}
    legend = [f"Values {formatting.format_units(metrics)}; ↓ lower is better. The best is bold."]
    if reference is not None and comparison.resamples is not None:
        legend = formatting.describe_bootstrap(
            reference, comparison.resamples, comparison.seed, metrics
        )
    notes_on_all = [
        *formatting.describe_accuracy(comparison.accuracy),
        *legend,
        *formatting.describe_adapting(comparison.adapt),
        *comparison.notes,
    ]
    return Layout("calibrator", names, columns, group_notes, notes_on_all)


def _lay_out_value(of_seeds: Sequence[Result], base: float | None, best: float) -> Cell:
    """One calibrator's value of one metric, its mean over seeds."""
    if not of_seeds:
        return Cell(NOT_AVAILABLE)
    values = [row.value for row in of_seeds]
    mean = average_seeds(of_seeds)[of_seeds[0][:3]]
    row = of_seeds[0]._replace(value=mean)
    text = formatting.format_mean(row.metric, values)
    if base is None or text == NOT_AVAILABLE:
        return Cell(text, is_best=mean == best)
    flag = WITHIN_NOISE if formatting.is_within_noise(row) else ""
    mark = formatting.mark_result(row, base)
    return Cell(text, formatting.format_interval(row), mark, flag, mean == best)


def lay_out_evaluation(evaluation: "Evaluation") -> Layout:
    """Rows are metrics, columns before, after and change in groups of test sets."""
    metrics = list(next(iter(evaluation.sets.values())).after)
    columns = []
    for name, one in evaluation.sets.items():
        title = (
            f"{evaluation.calibrator.title} on {name}: "
            f"{count(len(evaluation.tests[name][0]), 'sample')}, accuracy "
            f"{formatting.format_percent(evaluation.accuracy[name])} %"
        )
        pairs = [
            (metric, (one.before[metric].value, one.after[metric].value)) for metric in metrics
        ]
        best = {metric: formatting.find_best(metric, values) for metric, values in pairs}
        for heading, results in (("before", one.before), ("after", one.after)):
            cells = [
                Cell(
                    formatting.format_value(results[metric]),
                    formatting.format_interval(results[metric]),
                    is_best=results[metric].value == best[metric],
                )
                for metric in metrics
            ]
            columns.append(Column(heading, cells, title))
        changes = [
            Cell(
                formatting.format_change(one.change[metric]),
                formatting.format_change_interval(one.change[metric]),
                formatting.describe_mark(formatting.mark_change(one.change[metric])),
            )
            for metric in metrics
        ]
        columns.append(Column("change", changes, title))
    headings, notes = [format_heading(metric) for metric in metrics], _note_evaluation(evaluation)
    return Layout("metric", headings, columns, notes=notes)


def _note_evaluation(evaluation: "Evaluation") -> list[str]:
    """What the numbers mean, then what was adapted, accepted and covered."""
    metrics = next(iter(evaluation.sets.values())).after
    notes = [
        f"Values {formatting.format_units(metrics)}; ↓ lower is better, ↑ higher is better; binned "
        "errors have 25 bins."
    ]
    if evaluation.resamples is not None:
        notes.append(
            f"{formatting.describe_interval()} {evaluation.resamples} resamples, seed "
            f"{evaluation.seed}; changes are paired, each tested alone at 5 %."
        )
    notes += [*formatting.describe_adapting(evaluation.adapt), *evaluation.class_changes]
    notes += describe_sets(evaluation.calibrator, evaluation.set_quality)
    return [*notes, *evaluation.decision_notes]


def lay_out_gains(corner: str, gains: "Sequence[ViewGain]", *, is_grown: bool = False) -> Layout:
    """What sets of views gain; where they grow, only the view that is added is named."""
    names = [
        f"+ {gain.views[-1]}" if is_grown and len(gain.views) > 1 else gain.views[-1]
        for gain in gains
    ]
    columns = {
        "passes": [Cell(str(len(gain.views))) for gain in gains],
        "brier ↓": [Cell(f"{100 * gain.brier:.3f}") for gain in gains],
        "log loss ↓": [Cell(f"{gain.log_loss:.4f}") for gain in gains],
        "gain ↑": [
            Cell(f"{100 * gain.gain:.3f}", f"{100 * gain.low:.3f} to {100 * gain.high:.3f}")
            for gain in gains
        ],
        "a pass ↑": [Cell(f"{100 * gain.per_pass:.3f}") for gain in gains],
    }
    return Layout(corner, names, [Column(name, cells) for name, cells in columns.items()])


def lay_out_view_costs(costs: "Sequence[ViewCost]") -> Layout:
    """Budgets of forward passes, what they really take, and the metrics they reach."""
    bands = [
        "never"
        if cost.band.is_empty
        else "everywhere"
        if cost.band == (0.0, 1.0)
        else f"{cost.band.low:.3f} to {cost.band.high:.3f}"
        for cost in costs
    ]
    columns = [
        Column("passes", [Cell(f"{cost.passes:.2f}") for cost in costs]),
        Column("views looked at where", [Cell(band) for band in bands]),
    ]
    for metric in ("brier", "auroc", "ece"):
        values = [formatting.format_number(metric, getattr(cost, metric)) for cost in costs]
        columns.append(Column(format_heading(metric), [Cell(value) for value in values]))
    notes = ("passes: mean forward passes per image. Metrics in %.",)
    return Layout("budget", [f"{cost.budget:g}" for cost in costs], columns, notes=notes)


def lay_out_candidates(choice: "MethodChoice") -> Layout:
    """The held-out losses that a method was selected by, from the simplest on."""
    candidates = choice.candidates

    def column(heading: str, values: Iterable[float]) -> Column:
        cells = [
            Cell(f"{100 * value:.3f}", is_best=one.method == choice.method)
            for one, value in zip(candidates, values, strict=True)
        ]
        return Column(heading, cells)

    columns = [column("brier ↓", (one.unshifted for one in candidates))]
    shifted = [one.shifted for one in candidates if one.shifted is not None]
    columns += [column("under shift ↓", shifted)] if shifted else []
    columns += [
        column("above the best", (one.excess for one in candidates)),
        column("±", (one.error for one in candidates)),
    ]
    names = [one.method for one in candidates]
    return Layout("from the simplest on", names, columns, notes=(f"{choice.reason}.",))


RANKS = "mean rank"


def lay_out_benchmark(benchmark: "Benchmark") -> Layout:
    """Rows are methods; columns metrics in groups of test sets, the floor beside ECE, and ranks."""
    rows, classifiers = benchmark.rows, benchmark.classifiers
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
    settings = unique(one.adapt for one in benchmark.comparisons.values())
    notes = [
        *_describe_means(rows, classifiers, benchmark.resamples, benchmark.seed),
        *(line for adapt in settings for line in formatting.describe_adapting(adapt)),
        *formatting.describe_accuracy(benchmark.accuracy),
        *benchmark.notes,
    ]
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


def _describe_means(
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
