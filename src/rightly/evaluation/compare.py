"""Many methods on the same test sets: fitted, measured, and tested against one of them."""

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from rightly.calibrators import CALIBRATORS, Calibrator, Method
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.checks import check_count
from rightly.evaluation.data_sets import (
    LabelledSet,
    TestSets,
    load_data_set,
    load_test_sets,
    measure_accuracies,
)
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import (
    ADAPTER,
    TABLE_METRICS,
    check_adapt,
    compute_outcomes,
    compute_values,
    fit_method,
    resolve_metrics,
)
from rightly.evaluation.replicates import Replicates
from rightly.evaluation.results import (
    FilePath,
    Result,
    ResultTable,
    count,
    describe_class_changes,
    gather_notes,
    read_results,
    resolve_reference,
    resolve_resamples,
    restore_nan,
    unique,
)
from rightly.evaluation.selection import find_missing_inputs
from rightly.metrics import METRICS
from rightly.predictions import Predictions
from rightly.progress import Progress
from rightly.progress import track as track_progress
from rightly.registry import LISTED, unknown_name

if TYPE_CHECKING:
    from rightly.reporting.layout import Layout

DEFAULT_GROUPS = ("baseline", "binary", "paper", "own")

# A name of the registry, a record, a calibrator, or a class or function that builds one.
MethodLike = str | Method | Calibrator | Callable[..., Calibrator]
MethodLikes = str | Sequence[MethodLike] | Mapping[str, MethodLike]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultTable[Result]):
    """One result per calibrator, test set, metric and seed.

    `skipped` holds the methods that were not compared, with the inputs they need; `notes` what
    should be known about single fits. A comparison read from a file has neither calibrators nor
    data.
    """

    kind = "comparison"

    results: Sequence[Result]
    resamples: int | None = None  # of intervals and tests, where there are any
    reference: str | None = None  # that the others are tested against
    seed: int = 0  # of the first fit, and of the resamples
    adapt: bool | int = False  # to each test set without its labels, or to batches of so many rows
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calibrators: Mapping[str, Calibrator] = field(default_factory=dict)  # of the first seed
    cal: LabelledSet | None = None
    tests: TestSets = field(default_factory=dict)
    accuracy: Mapping[str, float] = field(default_factory=dict)  # the classifier's, by test set
    notes: Sequence[str] = ()

    @property
    def rows(self) -> Sequence[Result]:
        return self.results

    @property
    def methods(self) -> list[str]:
        return unique(row.calibrator for row in self.results)

    @property
    def datasets(self) -> list[str]:
        return unique(row.dataset for row in self.results)

    @property
    def metrics(self) -> list[str]:
        return unique(row.metric for row in self.results)

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.results]

    def lay_out(self) -> "Layout":
        from rightly.reporting.layout import lay_out_comparison

        return lay_out_comparison(self)

    def describe(self) -> dict[str, Any]:
        return {
            "resamples": self.resamples,
            "reference": self.reference,
            "seed": self.seed,
            "adapt": self.adapt,
            "skipped": {name: list(needs) for name, needs in self.skipped.items()},
            "accuracy": dict(self.accuracy),
            "notes": list(self.notes),
        }

    @classmethod
    def load(cls, path: FilePath) -> "Comparison":
        """A comparison that `to_json` wrote: its values, without calibrators and data."""
        content = read_results(path, cls.kind)
        try:
            results = [_restore_result(row) for row in content["rows"]]
            unknown = [row.metric for row in results if row.metric not in METRICS]
            if unknown or not results:
                raise ValueError(f"unknown metric {unknown[0]!r}" if unknown else "no rows")
            resamples, reference = content["resamples"], content["reference"]
            check_adapt(content["adapt"])
            if resamples is not None:
                check_count("resamples", resamples)
                resolve_reference(reference, unique(row.calibrator for row in results))
            loaded = cls(
                results,
                resamples,
                reference,
                check_count("seed", content["seed"], 0),
                content["adapt"],
                {name: tuple(needs) for name, needs in content["skipped"].items()},
                accuracy={name: float(x) for name, x in content["accuracy"].items()},
                notes=[str(note) for note in content["notes"]],
            )
            loaded.lay_out()  # which refuses values that are none
            return loaded
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)} is damaged ({error}): write it again with to_json"
            ) from error

    def plot(self, kind: str = "values", **options: Any) -> Any:
        """Draws one of `rightly.reporting.figures.FIGURES` and returns its first axes.

        `options` are fields of FigureData: metric, bins, method, resamples, seed.
        """
        from rightly.reporting.figures.kinds import FIGURES, FigureData, draw_figure

        if not self.calibrators and kind in FIGURES and FIGURES[kind].needs != "results":
            raise ValueError(
                f"the figure {kind} needs calibrators and data, which a comparison read from a "
                "file does not have: draw the figure values, or compare again"
            )
        options = {"metric": self.metrics[0] if kind == "values" else "brier", **options}
        data = FigureData(
            self.tests, self.calibrators, self.cal, self.results, adapt=self.adapt, **options
        )
        return draw_figure(kind, data)

    def __repr__(self) -> str:
        size = f"{count(self.methods, 'method')} on {count(self.datasets, 'test set')}"
        tests = "" if self.reference is None else f", tested against {self.reference}"
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Comparison: {size}, {count(self.metrics, 'metric')}{tests}{skipped}>"


def _restore_result(record: Mapping[str, Any]) -> Result:
    """A row read from JSON: three names, then numbers."""
    row = Result(**restore_nan(record))
    are_names = all(isinstance(name, str) for name in row[:3])
    if not are_names or not all(type(number) in (int, float) for number in row[3:]):
        raise TypeError(f"a row must hold names and numbers, got {str(record)[:200]}")
    return row


def compare(
    cal: Any,
    tests: Mapping[str, Any],
    *,
    methods: MethodLikes | None = None,
    metrics: str | Sequence[str] = TABLE_METRICS,
    intervals: bool = False,
    resamples: int | None = None,
    reference: str | None = None,
    repeats: int = 1,
    seed: int = 0,
    adapt: bool | int = False,
    any_classifier: bool = False,
    allow_overlap: bool = False,
    track: str | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Fit methods on calibration data and measure them on every test set.

    A data set is a path or (predictions, labels); one with shifted rows makes several test sets.

    Args:
        methods: Names, aliases or groups, or "all"; None stands for the groups baseline, binary,
            paper and own. Of a group, those methods are compared whose inputs are in all data.
            Beside names there may be calibrators, fitted or not, and classes and functions that
            build one; a mapping gives each a name of its own.
        metrics: Names, or "all".
        intervals: Report 95 % intervals, and paired tests against the reference.
        resamples: Bootstrap resamples of each test set; None for 1000, or more where many tests
            ask for it.
        reference: None for temperature scaling, or the first method where that is not compared.
        repeats: Fits of each method that draws at random, with as many seeds from `seed` on.
        adapt: True adapts each calibrator to every test set without its labels, a number to each
            batch of so many rows in their order. A note names the methods that cannot be adapted.
        any_classifier: Take test sets of another classifier.
        allow_overlap: Take test sets with more than 1 % of the calibration rows.
        track: Send the results to a tracker, "mlflow" or "wandb".
        progress: True for a bar, or a function called with (step, done, total).
    """
    check_adapt(adapt)
    check_count("repeats", repeats)
    chosen = resolve_metrics(metrics)
    if reference is not None and not intervals:
        raise ValueError("reference must come with intervals=True: without them nothing is tested")
    if track is not None:
        from rightly.reporting.trackers import check_tracker

        check_tracker(track)
    data, sets = load_data_set(cal, argument="cal"), load_test_sets(tests)
    known = CalibrationData.of_predictions(data[0])
    check_test_sets([known], sets, any_classifier, allow_overlap)
    selection = resolve_methods(methods, data, sets)
    comparing = _Comparing(data, sets, chosen, seed, adapt)
    if intervals:
        names = list(selection.methods)
        comparing.draw_resamples(resolve_resamples(resamples, len(names)), len(names))
        if reference is not None:  # an unknown one is refused before any fit
            reference = CALIBRATORS[reference].name if reference in CALIBRATORS else reference
            resolve_reference(reference, names)
    with track_progress(progress) as step:
        comparing.run(selection.methods, repeats, step)
    comparison = comparing.finish(reference, selection.skipped)
    if track is not None:
        from rightly.reporting.trackers import log_comparison

        log_comparison(comparison, track)
    return comparison


class _Comparing:
    """Methods as they are fitted and measured, one after another."""

    def __init__(
        self,
        cal: LabelledSet,
        tests: TestSets,
        metrics: Sequence[str],
        seed: int,
        adapt: bool | int,
    ) -> None:
        self.cal, self.tests, self.metrics, self.seed, self.adapt = cal, tests, metrics, seed, adapt
        self.resamples: int | None = None
        self.replicates: Replicates | None = None
        self.results: list[Result] = []
        self.calibrators: dict[str, Calibrator] = {}
        self.fit_notes: dict[str, list[str]] = {}
        self.refusals: dict[str, ShiftError] = {}
        self.own_accuracy = measure_accuracies(tests)
        self.accuracies: dict[str, dict[str, tuple[float, float]]] = {}  # where classes may change

    def run(
        self, methods: Mapping[str, Method | Calibrator], repeats: int, progress: Progress
    ) -> None:
        """Fit and measure every method.

        What draws nothing at random, or is fitted already, is measured once and counts for each
        seed.
        """
        fits = {
            name: repeats if method.is_random else 1
            for name, method in methods.items()
            if isinstance(method, Method)
        }
        done = 0
        for name, method in methods.items():
            if not isinstance(method, Method):
                self.measure(name, method, self.seed)
                self.repeat(name, repeats)
                continue
            for seed in range(self.seed, self.seed + fits[name]):
                progress(name, done, sum(fits.values()))
                fitted = fit_method(method, *self.cal, seed, adaptable=self.adapt is not False)
                self.measure(name, fitted, seed)
                done += 1
            if not method.is_random:
                self.repeat(name, repeats)
        if not self.results:
            raise next(iter(self.refusals.values()))

    def measure(self, name: str, fitted: Calibrator, seed: int) -> None:
        """Add the values of a fitted calibrator on every test set."""
        for dataset, (test, truth) in self.tests.items():
            seen = fitted.select_views(test)
            try:
                outcomes = compute_outcomes(fitted, seen, truth, self.metrics, self.adapt)
            except ShiftError as error:
                self.refusals[name] = error
                return
            values = compute_values(outcomes, self.metrics)
            self.results += [Result(name, dataset, key, x, seed) for key, x in values.items()]
            if not fitted.keeps_class:
                pair = self.own_accuracy[dataset], float(outcomes.correct.mean())
                self.accuracies.setdefault(name, {}).setdefault(dataset, pair)
            if self.replicates is not None:
                self.replicates.add(name, dataset, outcomes)
        self.calibrators.setdefault(name, fitted)
        self.fit_notes.setdefault(name, []).append(fitted.fit_note)

    def repeat(self, name: str, repeats: int) -> None:
        """Let what was measured with the first seed count for the others."""
        first = [row for row in self.results if row.calibrator == name]
        for seed in range(self.seed + 1, self.seed + repeats):
            self.results += [row._replace(seed=seed) for row in first]

    def draw_resamples(self, resamples: int, methods: int) -> None:
        """Prepare intervals and tests on the same resamples for so many methods."""
        sizes = {dataset: len(test) for dataset, (test, _) in self.tests.items()}
        self.resamples = resamples
        self.replicates = Replicates(resamples, self.seed, sizes, self.metrics, methods)

    def finish(self, reference: str | None, skipped: Mapping[str, tuple[str, ...]]) -> Comparison:
        """The comparison of all that was measured."""
        results = self.results
        if self.replicates is not None:
            reference = resolve_reference(reference, list(self.calibrators))
            results = self.replicates.attach(results, reference)
        return Comparison(
            results,
            self.resamples,
            reference,
            self.seed,
            self.adapt,
            skipped,
            self.calibrators,
            self.cal,
            self.tests,
            self.own_accuracy,
            [
                *describe_class_changes(self.accuracies),
                *gather_notes(self.fit_notes),
                *(f"Left out: {error}." for error in self.refusals.values()),
            ],
        )


class MethodSelection(NamedTuple):
    """By name, methods to fit, then calibrators that are fitted already; what the others lack."""

    methods: Mapping[str, Method | Calibrator]
    skipped: Mapping[str, tuple[str, ...]]


def resolve_methods(methods: Any, cal: LabelledSet, tests: TestSets) -> MethodSelection:
    """Resolve names, aliases, groups and objects; of groups, the methods whose inputs are there.

    A method called by its own name is not skipped: it is refused when it is fitted.
    """
    items = list(_list_items(methods))
    names = [item for given, item in items if _is_name(given, item)]
    records: dict[str, Method] = {}
    fitted: dict[str, Calibrator] = {}
    taken = {CALIBRATORS[one].name for one in names if one in CALIBRATORS}
    for given, item in items:
        if _is_name(given, item):
            continue
        name = given or _find_name(item)
        if name in taken:
            raise ValueError(
                f"methods must have different names, got {name!r} twice: name them, "
                "methods={'first': ..., 'second': ...}"
            )
        taken.add(name)
        if isinstance(item, Calibrator) and item.is_fitted:
            fitted[name] = item
        else:
            records[name] = _to_record(name, item)
    selected, skipped = _resolve_names(names, [cal[0], *(test for test, _ in tests.values())])
    if methods is None:  # in the order of the registry, whatever that of the groups
        selected = [name for name in CALIBRATORS if name in selected]
    if not selected and (skipped or not (records or fitted)):
        raise ValueError(
            "methods must hold one whose inputs are in all data, but "
            + "; ".join(f"{name} needs {', '.join(needs)}" for name, needs in skipped.items())
        )
    named = {name: CALIBRATORS.find(name) for name in selected}
    return MethodSelection({**named, **records, **fitted}, skipped)


def _list_items(methods: Any) -> Iterator[tuple[str | None, Any]]:
    """What was given, each with the name that a mapping gives it."""
    if isinstance(methods, Mapping):
        yield from methods.items()
        return
    given = DEFAULT_GROUPS if methods is None else methods
    yield from ((None, item) for item in ((given,) if isinstance(given, str) else given))


def _is_name(given: str | None, item: Any) -> bool:
    """Whether an item is a name to look up, and has no other name."""
    return isinstance(item, str) and given is None


def _resolve_names(
    names: Sequence[str], predictions: Sequence[Predictions]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Canonical names of methods, and of those of groups that are skipped, what they lack."""
    groups = {method.group for method in CALIBRATORS.values()}
    selected: list[str] = []
    skipped: dict[str, tuple[str, ...]] = {}
    for item in names:
        if item != "all" and item not in groups:
            if item not in CALIBRATORS:
                known = [*CALIBRATORS, *sorted(groups), "all"]
                aliases, listed = CALIBRATORS.aliases, LISTED["method"]
                raise unknown_name("methods", item, known, aliases, listed)
            selected.append(CALIBRATORS[item].name)
            continue
        for name, method in CALIBRATORS.items():
            if item in ("all", method.group):
                if lacking := find_missing_inputs(name, predictions):
                    skipped[name] = lacking
                else:
                    selected.append(name)
    return unique(selected), {name: x for name, x in skipped.items() if name not in selected}


def _find_name(item: Any) -> str:
    """The name in a table of a method that was given as an object."""
    if isinstance(item, Method):
        return item.name
    if isinstance(item, Calibrator):
        return item.title
    name = getattr(item.func if isinstance(item, partial) else item, "__name__", None)
    if not callable(item) or name is None:
        raise TypeError(
            "methods must be names, calibrators, or classes or functions that build one, got "
            f"{type(item).__name__}: {ADAPTER}"
        )
    if name == "<lambda>":
        raise ValueError("methods must have names, got a lambda: pass methods={'name': lambda: ..}")
    return str(name)


def _to_record(name: str, item: Any) -> Method:
    """A record that builds the method, under this name and in no registry."""
    if isinstance(item, str):
        item = CALIBRATORS.find(item)
    if isinstance(item, Method):
        return item if item.name == name else replace(item, name=name, aliases=())
    if isinstance(item, Calibrator):
        return Method(name, partial(copy.deepcopy, item), "own")
    if not callable(item):
        raise TypeError(
            f"methods[{name!r}] must be a name, a calibrator, or a class or function that builds "
            f"one, got {type(item).__name__}: {ADAPTER}"
        )
    return Method(name, item, "own", is_random="seed" in signature(item).parameters)
