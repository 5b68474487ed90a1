"""Methods over classifiers by folder: measured once, kept, averaged, tested, drawn."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rightly.calibrators import CALIBRATORS
from rightly.checks import check_choice, check_count
from rightly.evaluation.compare import Comparison
from rightly.evaluation.measurement import TABLE_METRICS, check_adapt, resolve_metrics
from rightly.evaluation.over_classifiers.fits import FitKey, FitStore
from rightly.evaluation.over_classifiers.folders import find_classifiers
from rightly.evaluation.over_classifiers.measuring import (
    Task,
    check_kept,
    measure_classifiers,
    plan_classifier,
)
from rightly.evaluation.over_classifiers.method_tests import compare_over_classifiers
from rightly.evaluation.over_classifiers.value_grid import MEAN, MeanResult, ValueGrid, build_grid
from rightly.evaluation.results import (
    FilePath,
    ResultTable,
    count,
    resolve_reference,
    resolve_resamples,
)
from rightly.metrics import Outcomes
from rightly.predictions.store import lock_folder
from rightly.progress import Progress, track
from rightly.reporting.formatting import describe_adapting
from rightly.reporting.layout import Layout
from rightly.reporting.over_classifiers.layouts import describe_means, lay_out_means
from rightly.reporting.over_classifiers.method_tests import MethodTests
from rightly.reporting.over_classifiers.notes import build_comparison, describe_fits

ROPE = 0.001  # a tenth of a point: for less nobody changes a method
FITS = "fits"  # the folder of what is kept, below `out`


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(ResultTable[MeanResult]):
    """One row a method, test set and metric: the mean over classifiers, which all have it.

    `comparisons` holds each classifier's own values; `skipped` the methods that none could use,
    with the inputs they need.
    """

    kind = "benchmark"

    comparisons: Mapping[str, Comparison]
    grid: ValueGrid
    store: FitStore
    resamples: int  # of classifiers
    reference: str  # that the others are tested against
    seed: int
    rope: float = ROPE
    notes: Sequence[str] = ()

    @cached_property
    def rows(self) -> Sequence[MeanResult]:
        return self.grid.average(self.resamples, self.seed)

    @property
    def classifiers(self) -> Sequence[str]:
        return self.grid.classifiers

    @property
    def methods(self) -> Sequence[str]:
        return self.grid.methods

    @property
    def datasets(self) -> list[str]:
        return [name for name in self.grid.datasets if name != MEAN]

    @property
    def skipped(self) -> dict[str, tuple[str, ...]]:
        return {
            name: needs for one in self.comparisons.values() for name, needs in one.skipped.items()
        }

    @cached_property
    def tests(self) -> MethodTests | None:
        """Tests over classifiers; None where there is one classifier or method only."""
        if len(self.classifiers) < 2 or len(self.methods) < 2:
            return None
        tests, metrics = compare_over_classifiers(self.grid, self.reference, self.rope, self.seed)
        return MethodTests(tests, metrics, self.reference, self.rope) if tests else None

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.rows]

    def list_values(self) -> list[dict[str, Any]]:
        """Every value: a record a classifier, method, test set, metric and seed."""
        return [
            {"classifier": name, **record}
            for name, one in self.comparisons.items()
            for record in one.to_records()
        ]

    def lay_out(self) -> Layout:
        legend = describe_means(self.rows, self.classifiers, self.resamples, self.seed)
        return lay_out_means(self.rows, self.classifiers, [*legend, *self.notes])

    def describe(self) -> dict[str, Any]:
        return {
            "classifiers": list(self.classifiers),
            "resamples": self.resamples,
            "reference": self.reference,
            "seed": self.seed,
            "skipped": {name: list(needs) for name, needs in self.skipped.items()},
            "notes": list(self.notes),
            "tests": None if self.tests is None else self.tests.describe(),
        }

    def plot(self, kind: str = "critical-difference", **options: Any) -> Any:
        """Draws a figure and returns one of its axes; `.figure` holds them all.

        `critical-difference` is of one `metric`. `reliability` has a panel a classifier and method,
        on one `dataset`; `roc` and `risk-coverage` one a classifier and test set. Without `methods`
        these are uncalibrated, temperature_scaling and the best by mean rank.
        """
        from rightly.reporting.over_classifiers.pictures import draw_benchmark

        return draw_benchmark(self, kind, **options)

    def read_outcomes(self, classifier: str, method: str, dataset: str) -> Outcomes:
        """Confidence and correctness of the first fit on one test set."""
        return self.store.read_outcomes(FitKey(classifier, method, self.seed), dataset)

    def save(
        self,
        folder: FilePath,
        figures: Sequence[str] | None = None,
    ) -> list[Path]:
        """Writes every table and figure into a folder, and returns their paths."""
        from rightly.reporting.over_classifiers.files import write_benchmark

        return write_benchmark(self, Path(folder), figures)

    def __repr__(self) -> str:
        size = f"{count(self.methods, 'method')} on {count(self.datasets, 'test set')}"
        return f"<Benchmark: {size}, {count(self.classifiers, 'classifier')}>"


def benchmark(
    directory: FilePath,
    *,
    out: FilePath | None = None,
    methods: str | Sequence[str] | None = "all",
    metrics: str | Sequence[str] = TABLE_METRICS,
    cal: str = "cal",
    classifiers: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    views: Sequence[str] | None = None,
    resamples: int | None = None,
    reference: str | None = None,
    repeats: int = 1,
    seed: int = 0,
    adapt: bool | int = False,
    rope: float = ROPE,
    replace: bool = False,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    labels: Mapping[Any, FilePath] | None = None,
    probabilities: bool = False,
    notify: Callable[[str], object] | None = None,
    progress: Progress | bool = False,
) -> Benchmark:
    """Fit methods for every classifier of a directory, and average over them.

    Predictions lie in DIRECTORY/CLASSIFIER/SET. A method that came with a group and cannot be
    fitted is left out.

    Args:
        out: Fits are kept below it as they are made: a stopped call goes on when it is repeated,
            and one with more methods, classifiers or repeats adds what is new. Fits of other data
            or settings are refused.
        methods, metrics, repeats, adapt, any_classifier, allow_overlap: As for `compare`.
        cal: The set of each classifier to fit on.
        classifiers: Names; None for all.
        tests: Sets to measure on; None for all others.
        views: Use only these views.
        resamples: Of classifiers; None for 1000, or more where many tests ask for it.
        reference: That the others are tested against; None for temperature scaling, or the first.
        seed: Of fits, from it on, and of resamples.
        labels: Paths of data sets without labels, and of files with them.
        probabilities: Arrays hold these, as in `load`.
        rope: Difference up to which methods count as the same.
        replace: Measure again what other data or settings gave.
        notify: Called with a line about each method that is left out.
        progress: True for a bar, or a function called with (step, done, total).
    """
    check_count("repeats", repeats)
    check_adapt(adapt)
    if not 0 <= rope < 1:
        raise ValueError(f"rope must be a difference of at least 0 and below 1, got {rope}")
    place = None if out is None else Path(out)
    root = Path(directory).resolve()
    if place is not None and root in (place.resolve(), *place.resolve().parents):
        raise ValueError(
            f"out must lie outside of the directory of the classifiers, {directory}, where it "
            f"would be taken for one, got {place}: choose another out"
        )
    found = find_classifiers(directory, cal, classifiers, tests)
    read = [path for one in found.classifiers.values() for path in (one.cal, *one.tests.values())]
    for path in labels or ():
        check_choice("labels", str(Path(path)), map(str, read))
    task = Task(
        methods,
        resolve_metrics(metrics),
        repeats,
        seed,
        views,
        any_classifier,
        allow_overlap,
        adapt,
        {Path(path): Path(file) for path, file in (labels or {}).items()},
        probabilities,
    )
    kept = None
    if place is not None:
        kept = place / FITS
        kept.mkdir(parents=True, exist_ok=True)
    with nullcontext() if kept is None else lock_folder(kept), track(progress) as step:
        store, plans = FitStore(kept), {}
        for i, (name, one) in enumerate(found.classifiers.items()):
            step(f"{name}: reading", i, len(found.classifiers))
            plans[name] = plan_classifier(name, one, task)
        if not replace:
            check_kept(store, plans, task)
        fits = measure_classifiers(plans, task, store, step, notify)
    comparisons = {name: build_comparison(one, task) for name, one in fits.items()}
    grid = build_grid({name: one.results for name, one in comparisons.items()})
    resamples = resolve_resamples(resamples, len(grid.methods))
    if reference is not None and reference in CALIBRATORS:
        reference = CALIBRATORS[reference].name
    reference = resolve_reference(reference, grid.methods)
    notes = [*describe_adapting(adapt), *grid.missing]
    notes += [*describe_fits(fits, grid, found.unread)]
    return Benchmark(comparisons, grid, store, resamples, reference, seed, rope, notes)
