"""From calibrators and test sets to numbers: one row a calibrator, test set, metric and seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rightly.calibrators import CALIBRATORS, AnyCalibrator, Calibrator, calibrator
from rightly.evaluation.results import SIGNIFICANT, Bootstrap, Key, with_intervals
from rightly.evaluation.results import Result as Result
from rightly.evaluation.results import mean_ranks as mean_ranks
from rightly.metrics import METRICS, Metric, Outcomes
from rightly.metrics import bootstrap as intervals
from rightly.predictions import Predictions, checked_labels
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

TABLE_METRICS = ("ece", "brier", "ks", "auroc")  # the columns of the paper's tables

TestSets = Mapping[str, tuple[Predictions, AnyArray]]
Announce = Callable[[str], object]


def measure(
    fitted: AnyCalibrator,
    predictions: Predictions,
    labels: AnyArray,
    metrics: Sequence[str] = tuple(METRICS),
) -> dict[str, float]:
    """The chosen metrics of a fitted calibrator on one test set."""
    return values_of(scored(fitted, predictions, labels, metrics), metrics)


def scored(
    fitted: AnyCalibrator, predictions: Predictions, labels: AnyArray, metrics: Sequence[str]
) -> Outcomes:
    """What a fitted calibrator says about one test set, as far as these metrics look at it."""
    known = checked_labels(labels, predictions)
    probabilities = None
    if any(metric(name).inputs == "probabilities" for name in metrics):
        probabilities = fitted.probabilities(predictions).double().cpu().numpy()
    return Outcomes(
        fitted.confidence(predictions).cpu().numpy(),
        (fitted.classes(predictions) == known).cpu().numpy(),
        probabilities,
        known.cpu().numpy(),
    )


def values_of(said: Outcomes, metrics: Sequence[str]) -> dict[str, float]:
    """The chosen metrics of what was said."""
    return {
        name: metric(name).measure(said.confidence, said.correct)
        if metric(name).inputs == "confidence"
        else metric(name).measure(*said.distribution)
        for name in metrics
    }


def compare(
    predictions: Predictions,
    labels: AnyArray,
    tests: TestSets,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    announce: Announce = lambda message: None,
    bootstrap: Bootstrap | None = None,
) -> list[Result]:
    """Fits every method on the calibration data and measures it on every test set.

    Methods that draw nothing at random are fitted once and count for every seed. Without
    `methods`, all those run whose inputs are there. With `bootstrap`, rows have intervals and
    tests against its reference.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    for name in metrics:
        metric(name)
    chosen = tuple(methods) if methods is not None else runnable(predictions, tests)
    judge = None if bootstrap is None else _Judge(bootstrap, chosen, tests, metrics)
    rows: list[Result] = []
    for name in chosen:
        for seed in range(seeds):
            if seed and not is_random(name):
                rows += [row._replace(seed=seed) for row in rows if row[0] == name and not row.seed]
                continue
            announce(name)
            fitted = fitted_by(name, predictions, labels, seed)
            for dataset, (test, truth) in tests.items():
                said = scored(fitted, test, truth, metrics)
                values = values_of(said, metrics)
                rows += [Result(name, dataset, key, value, seed) for key, value in values.items()]
                if judge is not None:
                    judge.look(name, dataset, said)
    return rows if judge is None else judge.judged(rows)


class _Judge:
    """Measures every calibrator on the same resamples of each test set."""

    def __init__(
        self, bootstrap: Bootstrap, methods: Sequence[str], tests: TestSets, metrics: Sequence[str]
    ) -> None:
        self.reference = reference_among(methods, bootstrap)
        self.metrics, self.bootstrap = metrics, bootstrap
        self.resamples = {
            name: intervals.draw_resamples(len(test), bootstrap.resamples, bootstrap.seed)
            for name, (test, _) in tests.items()
        }
        self.values: dict[Key, list[intervals.Values]] = {}
        self.floors: dict[tuple[str, str], intervals.NoiseFloor] = {}

    def look(self, name: str, dataset: str, said: Outcomes) -> None:
        found = intervals.replicate_metrics(said, self.metrics, self.resamples[dataset])
        for metric, values in found.items():
            self.values.setdefault((name, dataset, metric), []).append(values)
        if "ece" in self.metrics and (name, dataset) not in self.floors:
            self.floors[name, dataset] = intervals.noise_floor(
                said.confidence, self.bootstrap.resamples, self.bootstrap.seed
            )

    def judged(self, rows: Sequence[Result]) -> list[Result]:
        return with_intervals(rows, self.values, self.floors, self.reference)


def uncalibrated(predictions: Predictions, labels: AnyArray) -> Calibrator:
    """The classifier's own confidence, as a calibrator for predictions of as many classes."""
    # Without their shift: a fit needs rows that are not shifted, but this one learns nothing.
    return calibrator("uncalibrated").fit(Predictions(predictions.logits), labels)


def before_and_after(
    fitted: AnyCalibrator,
    dataset: str,
    predictions: Predictions,
    labels: AnyArray,
    bootstrap: Bootstrap | None = None,
) -> tuple[dict[str, Result], dict[str, Result], dict[str, Result]]:
    """Every metric of the classifier's own confidence, of the calibrated one, and the change."""
    own = uncalibrated(predictions, labels)
    names, metrics = ("before", "after"), tuple(METRICS)
    said = [scored(one, predictions, labels, metrics) for one in (own, fitted)]
    rows = [
        Result(name, dataset, key, value, 0)
        for name, one in zip(names, said, strict=True)
        for key, value in values_of(one, metrics).items()
    ]
    resampled: dict[str, list[intervals.Values]] = {}
    if bootstrap is not None:
        judge = _Judge(bootstrap, names, {dataset: (predictions, labels)}, metrics)
        for name, one in zip(names, said, strict=True):
            judge.look(name, dataset, one)
        rows = judge.judged(rows)
        resampled = {key: [judge.values[n, dataset, key][0] for n in names] for key in metrics}
    before, after = (
        {row.metric: row._replace(calibrator=title) for row in rows if row.calibrator == name}
        for name, title in zip(names, ("uncalibrated", fitted.title), strict=True)
    )
    change = {}
    for key in metrics:
        value = after[key].value - before[key].value
        row = Result("change", dataset, key, value, 0)
        if resampled:
            ends = intervals.interval(value, resampled[key][1] - resampled[key][0])
            row = row._replace(low=ends.low, high=ends.high, p=after[key].p)
        change[key] = row
    return before, after, change


def reference_among(methods: Sequence[str], bootstrap: Bootstrap) -> str:
    """The calibrator that the others are tested against."""
    reference = bootstrap.reference or methods[0]
    if reference not in methods:
        raise ValueError(
            f"reference must be one of the methods compared, {', '.join(methods)}, "
            f"got {reference!r}: add it to them, or choose another"
        )
    needed = intervals.min_resamples(len(methods) - 1, SIGNIFICANT)
    if bootstrap.resamples < needed:
        raise ValueError(
            f"resamples must be at least {needed} to tell {len(methods)} methods apart, "
            f"got {bootstrap.resamples}: with fewer, nothing can be significant"
        )
    return reference


def split_by_shift(
    name: str, predictions: Predictions, labels: AnyArray
) -> dict[str, tuple[Predictions, Labels]]:
    """One test set for the images as they are, and one for each shift they were collected under."""
    known = checked_labels(labels, predictions)
    if predictions.shift is None:
        return {name: (predictions, known)}
    sets = {}
    for value in predictions.shift.unique().tolist():
        title = name
        if value:
            named = len(predictions.shift_names) >= value
            title = predictions.shift_names[value - 1] if named else f"{name} shift {value}"
        rows = predictions.shift == value
        sets[title] = (predictions[rows], known[rows])
    return sets


def fitted_by(name: str, predictions: Predictions, labels: AnyArray, seed: int = 0) -> Calibrator:
    """A method fitted with its own arguments, and with this seed if it takes one."""
    arguments: dict[str, Any] = {"seed": seed} if is_random(name) else {}
    return calibrator(name, **arguments).fit(predictions, labels)


def is_random(name: str) -> bool:
    """Whether a method takes a seed."""
    return CALIBRATORS.find(name).is_random


def runnable(predictions: Predictions, tests: TestSets) -> tuple[str, ...]:
    """The methods whose inputs all these predictions have."""
    return tuple(name for name in CALIBRATORS if not missing(name, predictions, tests))


def missing(name: str, predictions: Predictions, tests: TestSets) -> tuple[str, ...]:
    """What a method needs and some of these predictions lack."""
    everywhere = [predictions, *(test for test, _ in tests.values())]
    return tuple(
        need
        for need in CALIBRATORS.find(name).needs
        if any(getattr(p, need) is None for p in everywhere)
    )


def metric(name: str) -> Metric:
    """The metric of this name."""
    if name not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]
