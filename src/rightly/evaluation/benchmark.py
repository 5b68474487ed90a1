"""Methods over the classifiers of a directory: measured once, kept, averaged and tested.

All data are read and checked before the first fit, and only one classifier is in memory at a time.
Each fit is kept in a file of its own when it is made, so that a stopped run goes on: what it was
made from, its results, and confidence and correctness on every test set.
"""

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from rightly import __version__
from rightly.calibrators import CALIBRATORS
from rightly.checks import (
    Schema,
    are_names,
    check_choice,
    check_count,
    check_table,
    is_table,
    is_text,
)
from rightly.evaluation.compare import Comparison, resolve_methods
from rightly.evaluation.data_sets import (
    LabelledSet,
    TestSets,
    load_data_set,
    load_test_sets,
    measure_accuracies,
)
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import (
    TABLE_METRICS,
    check_adapt,
    compute_outcomes,
    compute_values,
    fit_method,
    resolve_metrics,
)
from rightly.evaluation.ranking import (
    MEAN,
    MeanResult,
    MethodTests,
    ValueGrid,
    build_grid,
    compare_over_classifiers,
)
from rightly.evaluation.results import (
    RESAMPLES,
    FilePath,
    Result,
    ResultTable,
    count,
    describe_class_changes,
    gather_notes,
    resolve_reference,
    resolve_resamples,
    unique,
)
from rightly.files import digest_file, encode_json, parse_json, write_atomically
from rightly.metrics import Outcomes
from rightly.metrics.bootstrap import noise_floor
from rightly.predictions import Predictions, load
from rightly.predictions.arrays import SUFFIXES
from rightly.predictions.parquet import SHARDS
from rightly.predictions.store import lock_folder
from rightly.progress import Progress, track
from rightly.registry import unknown_name
from rightly.tensor_shapes import Labels

if TYPE_CHECKING:
    from rightly.reporting.layout import Layout

VERSION = 1
KEY = "rightly.fit"
CONTENT: Schema = {
    "version": (str(VERSION), lambda value: value == VERSION),
    "settings": ("a table", is_table),
    "note": ("text", is_text),
    "accuracies": ("a table", is_table),
    "datasets": ("a list of names", are_names),
}


class FitKey(NamedTuple):
    """Which fit: of which method, for which classifier, with which seed."""

    classifier: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} for {self.classifier}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Fit:
    """What was measured of one fitted method on the test sets of its classifier."""

    results: Sequence[Result]
    note: str = ""  # the calibrator's own
    # Before and after by test set, where the method may predict other classes.
    accuracies: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class FitStore:
    """Fits by key in the files of a folder; without one, in a folder that ends with the store."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="rightly-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.folder = folder

    def place(self, key: FitKey) -> Path:
        return self.folder / key.classifier / f"{quote(key.method, safe='')}-{key.seed}.safetensors"

    def read_settings(self, key: FitKey) -> dict[str, Any] | None:
        """What a fit was made from; None where it is not kept."""
        return self._read(key)["settings"] if self.place(key).exists() else None

    def read(self, key: FitKey) -> Fit:
        content = self._read(key)
        try:
            return Fit(
                [Result(*row[:3], *map(_restore, row[3:])) for row in content["results"]],
                content["note"],
                {name: (before, after) for name, (before, after) in content["accuracies"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error

    def read_outcomes(self, key: FitKey, dataset: str) -> Outcomes:
        """Confidence and correctness on one test set."""
        try:
            with safe_open(self.place(key), "np") as file:
                names = parse_json(file.metadata()[KEY])["datasets"]
                at = names.index(dataset)
                confidence = file.get_tensor(f"confidence.{at}").astype(np.float64)
                return Outcomes(confidence, file.get_tensor(f"correct.{at}").astype(bool))
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error

    def keep(
        self, key: FitKey, settings: Mapping[str, Any], fit: Fit, outcomes: Mapping[str, Outcomes]
    ) -> None:
        content = {
            "version": VERSION,
            "settings": settings,
            "results": [list(row) for row in fit.results],
            "note": fit.note,
            "accuracies": fit.accuracies,
            "datasets": list(outcomes),
        }
        arrays: dict[str, np.ndarray] = {}
        for i, one in enumerate(outcomes.values()):
            arrays[f"confidence.{i}"] = one.confidence.astype(np.float32)
            arrays[f"correct.{i}"] = one.correct.astype(np.uint8)
        path = self.place(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {KEY: encode_json(content)}
        write_atomically(path, lambda part: save_file(arrays, part, metadata))

    def _read(self, key: FitKey) -> dict[str, Any]:
        try:
            with safe_open(self.place(key), "np") as file:
                content = parse_json(file.metadata()[KEY])
            check_table(content, CONTENT, required=CONTENT)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(key, error) from error
        return content

    def _damaged(self, key: FitKey, error: Exception) -> ValueError:
        return ValueError(
            f"{self.place(key)} cannot be read as a fit that a benchmark kept ({error}): remove "
            "it, and it is measured again"
        )


def _restore(value: Any) -> Any:
    """What JSON has null for is not available."""
    return math.nan if value is None else value


FILES = (".npz", *SUFFIXES)
EXPECTED = "FOLDER/CLASSIFIER/SET.npz, or a folder written by collect instead of a file"


@dataclass(frozen=True)
class ClassifierFolder:
    """Where the predictions of one classifier are: to fit on, and to measure on by name."""

    cal: Path
    tests: Mapping[str, Path]


@dataclass(frozen=True)
class ClassifierFolders:
    """The classifiers of a folder by name, and what in it holds no predictions."""

    classifiers: Mapping[str, ClassifierFolder]
    unread: Sequence[str]


def find_classifiers(
    folder: str | os.PathLike[str],
    cal: str = "cal",
    classifiers: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
) -> ClassifierFolders:
    """Every classifier with its data sets, or those named, in their order; `cal` is to fit on."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(
            f"directory must hold a folder for each classifier, but there is no folder {root}: "
            f"arrange predictions as {EXPECTED}"
        )
    unread: list[str] = []
    sets: dict[str, dict[str, Path]] = {}
    for place in _list(root):
        found = _find_sets(place, unread) if place.is_dir() else {}
        if found:
            sets[place.name] = found
        else:
            unread.append(place.name)
    if not sets:
        raise ValueError(f"directory must hold predictions as {EXPECTED}, but {root} has none")
    _check_names("classifiers", classifiers, sets, f"folders with predictions in {root}")
    sets = {name: sets[name] for name in classifiers or sets}
    lacking = [name for name, found in sets.items() if cal not in found]
    if lacking:
        there = ", ".join(sets[lacking[0]])
        raise ValueError(
            f"cal must name the predictions to fit on, but there is no {cal!r} of "
            f"{', '.join(lacking)}, only {there}: add it, choose another cal, or leave the "
            "classifier out by naming others with classifiers="
        )
    measured = {name for found in sets.values() for name in found if name != cal}
    _check_names("tests", tests, measured, "test sets of a classifier")
    chosen = {}
    for name in sets:
        titles = [title for title in tests or sets[name] if title in sets[name] and title != cal]
        chosen[name] = ClassifierFolder(
            sets[name][cal], {title: sets[name][title] for title in titles}
        )
    bare = [name for name, one in chosen.items() if not one.tests]
    if bare:
        raise ValueError(
            f"directory must hold a test set of every classifier, but there is none of "
            f"{', '.join(bare)} beside {cal!r}: add one, or leave the classifier out by naming "
            "others with classifiers="
        )
    return ClassifierFolders(chosen, unread)


def _list(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _find_sets(folder: Path, unread: list[str]) -> dict[str, Path]:
    """The data sets of a classifier by name; what else there is goes to `unread`."""
    sets: dict[str, Path] = {}
    others = []
    for path in _list(folder):
        is_set = any(path.glob(SHARDS)) if path.is_dir() else path.suffix in FILES
        name = path.name if path.is_dir() else path.stem
        if not is_set:
            others.append(f"{folder.name}/{path.name}")
        elif name in sets:
            raise ValueError(
                f"directory must hold one data set of each name, but {folder} has "
                f"{sets[name].name} and {path.name}: rename or remove one"
            )
        else:
            sets[name] = path
    unread += others if sets else []
    return sets


def _check_names(
    argument: str, asked: Sequence[str] | None, there: Collection[str], what: str
) -> None:
    if asked is not None and not asked:
        raise ValueError(f"{argument} must name at least one of the {what}, got none")
    for name in asked or ():
        if name not in there:
            raise unknown_name(argument, name, sorted(there))


@dataclass(frozen=True)
class Task:
    """What is asked of every classifier; `methods` are names, aliases, groups or "all"."""

    methods: str | Sequence[str] | None
    metrics: Sequence[str]
    repeats: int = 1
    seed: int = 0  # of the first fit
    views: Sequence[str] | None = None
    any_classifier: bool = False
    allow_overlap: bool = False
    adapt: bool | int = False  # to each test set without its labels, or to batches of it
    labels: Mapping[Path, Path] = field(default_factory=dict)  # of data sets that hold none
    probabilities: bool = False


@dataclass(frozen=True, eq=False)
class ClassifierPlan:
    """One classifier: its methods, what the others lack, and what its fits are made from."""

    folder: ClassifierFolder
    methods: Sequence[str]
    skipped: Mapping[str, tuple[str, ...]]
    accuracy: Mapping[str, float]  # by test set
    sizes: Mapping[str, int]
    settings: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ClassifierFits:
    """The fits of one classifier by method, one a seed, and why a method has none."""

    plan: ClassifierPlan
    fits: dict[str, list[Fit]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Data(NamedTuple):
    cal: LabelledSet
    tests: TestSets


def plan_classifier(name: str, folder: ClassifierFolder, task: Task) -> ClassifierPlan:
    """Reads and checks all data of a classifier."""
    data = _load(name, folder, task)
    try:
        known = CalibrationData.of_predictions(data.cal[0])
        check_test_sets([known], data.tests, task.any_classifier, task.allow_overlap)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    selected, skipped = resolve_methods(task.methods, data.cal, data.tests)
    settings = {
        "rightly": __version__,
        "metrics": list(task.metrics),
        "views": None if task.views is None else list(task.views),
        "adapt": task.adapt,
        "probabilities": task.probabilities,
        "labels": {f"{path}={file}": digest_file(file) for path, file in task.labels.items()},
        "cal": digest_file(folder.cal),
        "tests": {title: digest_file(path) for title, path in folder.tests.items()},
    }
    sizes = {title: len(test) for title, (test, _) in data.tests.items()}
    accuracy = measure_accuracies(data.tests)
    return ClassifierPlan(folder, list(selected), skipped, accuracy, sizes, settings)


def check_kept(store: FitStore, plans: Mapping[str, ClassifierPlan], task: Task) -> None:
    """Refuses fits that were made from other data or settings."""
    stale = []
    for name, plan in plans.items():
        for key in _keys(name, plan, task):
            kept = store.read_settings(key)
            if kept is not None and kept != plan.settings:
                stale.append((key, _differ(kept, plan.settings)))
    if stale:
        more = f" (and {len(stale) - 1} more)" if len(stale) > 1 else ""
        raise ValueError(
            f"out must hold fits of the same data and settings, but {store.folder} has "
            f"{stale[0][0]}, made with {stale[0][1]}{more}: choose another out, or measure them "
            "again with replace=True"
        )


def measure_classifiers(
    plans: Mapping[str, ClassifierPlan],
    task: Task,
    store: FitStore,
    progress: Progress,
    notify: Callable[[str], object] | None = None,
) -> dict[str, ClassifierFits]:
    """Every fit of every plan, read where it is kept, else made and kept.

    A method that came with a group and cannot be fitted is left out and told of; one that was
    asked for by its own name is refused.
    """
    total, done = sum(len(list(_keys(name, plan, task))) for name, plan in plans.items()), 0
    asked = [task.methods] if isinstance(task.methods, str) else task.methods or ()
    named = {CALIBRATORS[one].name for one in asked if one in CALIBRATORS}
    of_all = {}
    for name, plan in plans.items():
        fits, data = ClassifierFits(plan), None
        for key in _keys(name, plan, task):
            progress(f"{name}: {key.method}", done, total)
            done += 1
            if key.method in fits.failed:
                continue
            if store.read_settings(key) != plan.settings:
                data = data or _load(name, plan.folder, task)
                try:
                    store.keep(key, plan.settings, *measure_fit(key, data, task))
                except ValueError as error:
                    if key.method in named:
                        raise ValueError(f"{key}: {error}") from error
                    reason = " ".join(str(error).split())  # notes are lines, in LaTeX comments
                    fits.failed[key.method] = reason
                    fits.fits.pop(key.method, None)
                    if notify is not None:
                        notify(f"left out: {key}: {reason}")
                    continue
            fits.fits.setdefault(key.method, []).append(store.read(key))
        if not fits.fits:
            raise ValueError(f"methods must hold one that can be fitted for {name}, got none")
        of_all[name] = fits
    return of_all


def measure_fit(key: FitKey, data: Data, task: Task) -> tuple[Fit, dict[str, Outcomes]]:
    """Fits a method and measures it on every test set, with the noise floor of its ECE."""
    fitted = fit_method(key.method, *data.cal, key.seed, adaptable=task.adapt is not False)
    results: list[Result] = []
    outcomes: dict[str, Outcomes] = {}
    accuracies: dict[str, tuple[float, float]] = {}
    before = measure_accuracies(data.tests)
    for dataset, (test, truth) in data.tests.items():
        seen = fitted.select_views(test)
        one = compute_outcomes(fitted, seen, truth, task.metrics, task.adapt)
        outcomes[dataset] = one
        if not fitted.keeps_class:
            accuracies[dataset] = before[dataset], float(one.correct.mean())
        for metric, value in compute_values(one, task.metrics).items():
            row = Result(key.method, dataset, metric, value, key.seed)
            if metric == "ece":
                floor = noise_floor(one.confidence, RESAMPLES)
                row = row._replace(floor=floor.mean, floor_high=floor.high)
            results.append(row)
    return Fit(results, fitted.fit_note, accuracies), outcomes


def _load(name: str, folder: ClassifierFolder, task: Task) -> Data:
    def read(path: Path) -> tuple[Predictions, Labels | None]:
        return load(
            path,
            labels=task.labels.get(path),
            probabilities=task.probabilities,
            views=task.views,
        )

    try:
        cal = load_data_set(read(folder.cal), argument=f"cal of {name}")
        return Data(
            cal, load_test_sets({title: read(path) for title, path in folder.tests.items()})
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from error


def _keys(name: str, plan: ClassifierPlan, task: Task) -> Iterator[FitKey]:
    for method in plan.methods:
        # One fit counts for every repeat where nothing is drawn at random.
        repeats = task.repeats if CALIBRATORS.find(method).is_random else 1
        for seed in range(task.seed, task.seed + repeats):
            yield FitKey(name, method, seed)


def _differ(kept: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which of the settings differ, in words."""
    changed = [name for name in now if kept.get(name) != now[name]]
    words = []
    for name in changed:
        if name in ("tests", "labels") and isinstance(kept.get(name), dict):
            files = sorted({*kept[name], *now[name]})
            differing = [one for one in files if kept[name].get(one) != now[name].get(one)]
            words.append(f"other {name} ({', '.join(differing)})")
        elif name == "cal":
            words.append("another cal")
        else:
            words.append(f"{name} {kept.get(name)!r}, now {now[name]!r}")
    return " and ".join(words) or "other settings"


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
    resamples: int  # of classifiers
    reference: str  # that the others are tested against
    seed: int = 0
    rope: float = ROPE
    accuracy: Mapping[str, float] = field(default_factory=dict)  # by test set, over classifiers
    notes: Sequence[str] = ()
    store: FitStore | None = None  # of confidence and correctness; None where results were read

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

    def lay_out(self) -> "Layout":
        from rightly.reporting.layout import lay_out_benchmark

        return lay_out_benchmark(self)

    def describe(self) -> dict[str, Any]:
        return {
            "classifiers": list(self.classifiers),
            "resamples": self.resamples,
            "reference": self.reference,
            "seed": self.seed,
            "accuracy": dict(self.accuracy),
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
        from rightly.reporting.benchmark_files import draw_benchmark

        return draw_benchmark(self, kind, **options)

    def read_outcomes(self, classifier: str, method: str, dataset: str) -> Outcomes:
        """Confidence and correctness of the first fit on one test set."""
        if self.store is None:
            raise ValueError(
                "a benchmark that was read from results has no confidences: measure it from "
                "predictions"
            )
        return self.store.read_outcomes(FitKey(classifier, method, self.seed), dataset)

    def save(
        self,
        folder: FilePath,
        figures: Sequence[str] | None = None,
    ) -> list[Path]:
        """Writes every table and figure into a folder, and returns their paths."""
        from rightly.reporting.benchmark_files import write_benchmark

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
    fitted is left out. A directory of results, one JSON file per classifier as `Comparison.to_json`
    writes it, is averaged and ranked as it is: of the keywords, only `resamples`, `reference`,
    `seed` and `rope` concern it.

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
    if results := find_results(Path(directory)):
        comparisons = {path.stem: Comparison.load(path) for path in results}
        return _average(comparisons, resamples, reference, seed, rope)
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
    notes = describe_fits(fits, found.unread)
    return _average(comparisons, resamples, reference, seed, rope, notes, store)


def _average(
    comparisons: Mapping[str, Comparison],
    resamples: int | None,
    reference: str | None,
    seed: int,
    rope: float,
    notes: Sequence[str] = (),
    store: FitStore | None = None,
) -> Benchmark:
    """Average what every classifier has, with notes on what some lack, and on its fits."""
    grid = build_grid({name: one.results for name, one in comparisons.items()})
    if reference is not None and reference in CALIBRATORS:
        reference = CALIBRATORS[reference].name
    own = [one.accuracy for one in comparisons.values()]
    shared = [name for name in grid.datasets if all(name in accuracy for accuracy in own)]
    return Benchmark(
        comparisons,
        grid,
        resolve_resamples(resamples, len(grid.methods)),
        resolve_reference(reference, grid.methods),
        seed,
        rope,
        {name: float(np.mean([accuracy[name] for accuracy in own])) for name in shared},
        [*grid.missing, *(notes if store is not None else describe_comparisons(comparisons))],
        store,
    )


def find_results(directory: Path) -> list[Path]:
    """The files of a directory of results; none where it holds directories of predictions."""
    if not directory.is_dir():
        return []
    listed = [path for path in sorted(directory.iterdir()) if not path.name.startswith(".")]
    is_of_results = all(path.suffix == ".json" and path.is_file() for path in listed)
    return listed if is_of_results else []


def describe_comparisons(comparisons: Mapping[str, Comparison]) -> list[str]:
    """The notes of comparisons, each with its classifier."""
    return [f"With {name}: {note}" for name, one in comparisons.items() for note in one.notes]


def build_comparison(fits: ClassifierFits, task: Task) -> Comparison:
    """What `compare` would have given; a fit without chance counts for every seed."""
    results: list[Result] = []
    for of_method in fits.fits.values():
        for i in range(task.repeats):
            one = of_method[min(i, len(of_method) - 1)]
            results += [row._replace(seed=task.seed + i) for row in one.results]
    notes = [
        *describe_class_changes({name: of[0].accuracies for name, of in fits.fits.items()}),
        *gather_notes({name: [one.note for one in of] for name, of in fits.fits.items()}),
        *(f"Left out: {method}: {error}." for method, error in fits.failed.items()),
    ]
    plan = fits.plan
    return Comparison(
        results,
        seed=task.seed,
        adapt=task.adapt,
        skipped=plan.skipped,
        accuracy=plan.accuracy,
        notes=notes,
    )


def describe_fits(fits: Mapping[str, ClassifierFits], unread: Sequence[str]) -> list[str]:
    """Changes of class and notes over all fits; what failed or was not read."""
    plans = [one.plan for one in fits.values()]
    shared = unique(name for plan in plans for name in plan.accuracy)
    shared = [name for name in shared if all(name in plan.accuracy for plan in plans)]
    everywhere = unique(method for one in fits.values() for method in one.fits)
    everywhere = [method for method in everywhere if all(method in of.fits for of in fits.values())]
    changes: dict[str, dict[str, tuple[float, float]]] = {}
    notes: dict[str, list[str]] = {}
    for method in everywhere:
        of_method = [one.fits[method] for one in fits.values()]
        notes[method] = [fit.note for of_seeds in of_method for fit in of_seeds]
        for name in shared:
            pairs = [of_seeds[0].accuracies.get(name) for of_seeds in of_method]
            known = [pair for pair in pairs if pair is not None]
            if known:
                before, after = (float(np.mean([pair[i] for pair in known])) for i in (0, 1))
                changes.setdefault(method, {})[name] = before, after
    sizes = {name: unique(plan.sizes[name] for plan in plans) for name in shared}
    return [
        *describe_class_changes(changes),
        *gather_notes(notes),
        *(
            f"{name} has {' or '.join(map(str, of))} samples, so it is not the same data for all."
            for name, of in sizes.items()
            if len(of) > 1
        ),
        *(
            f"{method} failed for {name}: {error}."
            for name, one in fits.items()
            for method, error in one.failed.items()
        ),
        *([f"Not read, as no predictions: {', '.join(unread)}."] if unread else []),
    ]
