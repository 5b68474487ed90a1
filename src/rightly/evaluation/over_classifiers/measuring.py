"""From folders of predictions to kept fits: every method and seed for every classifier, once.

All folders are read and checked before the first fit; only one classifier is in memory at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rightly import __version__
from rightly.calibrators import CALIBRATORS
from rightly.evaluation.compare import resolve_methods
from rightly.evaluation.data_sets import (
    LabelledSet,
    TestSets,
    load_data_set,
    load_test_sets,
    measure_accuracies,
)
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import compute_outcomes, compute_values, fit_method
from rightly.evaluation.over_classifiers.fits import Fit, FitKey, FitStore
from rightly.evaluation.over_classifiers.folders import ClassifierFolder
from rightly.evaluation.results import RESAMPLES, Result
from rightly.files import digest_file
from rightly.metrics import Outcomes
from rightly.metrics.bootstrap import noise_floor
from rightly.predictions import Predictions, load
from rightly.progress import Progress
from rightly.tensor_shapes import Labels


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
