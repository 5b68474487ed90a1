"""From calibrators and test sets to numbers: one result a calibrator, test set, metric and seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rightly.calibrators import CALIBRATORS, AnyCalibrator, Calibrator, Method, calibrator
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.evaluation.adapted_sets import MeasuredCalibrator, adapt_to_sets, check_batch
from rightly.evaluation.data_sets import LabelledSet, TestSets
from rightly.evaluation.given_methods import build_method, find_record
from rightly.evaluation.replicates import Replicates
from rightly.evaluation.results import (
    Bootstrap,
    Result,
    describe_class_changes,
    gather_notes,
    unique,
)
from rightly.metrics import METRICS, Outcomes, measure_all
from rightly.predictions import Predictions, check_labels
from rightly.resampling import interval
from rightly.shapes import AnyArray

TABLE_METRICS = ("ece", "brier", "ks", "auroc")  # the columns of the paper's tables

# Called with what is being done, how many steps are done, and of how many.
Progress = Callable[[str, int, int], object]


def resolve_metrics(metrics: str | Iterable[str] | None) -> list[str]:
    """The metrics of one name or several; None and "all" stand for every one."""
    if metrics is None or metrics == "all":
        return list(METRICS)
    names = [metrics] if isinstance(metrics, str) else metrics
    return unique(METRICS.find(name).name for name in names)


def measure(
    calibrator: MeasuredCalibrator | None,
    predictions: Predictions,
    labels: AnyArray,
    metrics: str | Sequence[str] | None = None,
) -> dict[str, float]:
    """The chosen metrics, or all, on one test set; of no calibrator, the classifier's own."""
    names = resolve_metrics(metrics)
    return compute_values(compute_outcomes(calibrator, predictions, labels, names), names)


def compute_outcomes(
    calibrator: MeasuredCalibrator | None,
    predictions: Predictions,
    labels: AnyArray,
    metrics: Sequence[str],
) -> Outcomes:
    """Confidence and correctness on one test set; probabilities only if a metric reads them.

    Without a calibrator, those of the classifier itself.
    """
    truth = check_labels(labels, predictions)
    reads_all = any(METRICS.find(name).inputs == "probabilities" for name in metrics)
    if calibrator is None:
        classes, confidence = predictions.classes, predictions.confidence
        probabilities = predictions.logits.double().softmax(-1) if reads_all else None
    else:
        classes, confidence = calibrator.classes(predictions), calibrator.confidence(predictions)
        probabilities = calibrator.probabilities(predictions).double() if reads_all else None
    return Outcomes(
        confidence.cpu().numpy(),
        (classes == truth).cpu().numpy(),
        None if probabilities is None else probabilities.cpu().numpy(),
        truth.cpu().numpy(),
    )


def compute_values(outcomes: Outcomes, metrics: Sequence[str]) -> dict[str, float]:
    """The chosen metrics of the outcomes on one test set."""
    records = [METRICS.find(name) for name in metrics]
    of_confidence = [metric.name for metric in records if metric.inputs == "confidence"]
    values: dict[str, float] = {}
    if of_confidence:
        values = measure_all(outcomes.confidence, outcomes.correct, of_confidence)
    for metric in records:
        if metric.inputs != "confidence":
            values[metric.name] = metric.measure(*outcomes.distribution)
    return {metric.name: values[metric.name] for metric in records}


class MethodComparison(NamedTuple):
    """Every value, the calibrators of the first seed that gave them, and notes on all fits."""

    results: list[Result]
    calibrators: dict[str, AnyCalibrator]
    notes: list[str]


def compare_methods(
    cal: LabelledSet,
    tests: TestSets,
    methods: Sequence[str | Method],
    metrics: str | Sequence[str] = TABLE_METRICS,
    seeds: int = 1,
    bootstrap: Bootstrap | None = None,
    progress: Progress | None = None,
    others: Mapping[str, AnyCalibrator] | None = None,
    adapt: bool = False,
    batch: int | None = None,
) -> MethodComparison:
    """Fits every method on the calibration data and measures it on every test set.

    Methods that draw nothing at random are fitted once and count for every seed. With `bootstrap`,
    results have intervals and tests. `others` are fitted already, and measured by their names.
    With `adapt`, each is adapted to every test set, or to batches of it; a note names those that
    cannot be, which are left out.
    """
    check_batch(adapt, batch)
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    records = unique(find_record(one) for one in methods)
    others = others or {}
    names, chosen = [*(record.name for record in records), *others], resolve_metrics(metrics)
    sizes = {dataset: len(test) for dataset, (test, _) in tests.items()}
    replicates = None
    if bootstrap is not None:
        replicates = Replicates(bootstrap.resolve(names), sizes, chosen, len(names))

    results: list[Result] = []
    calibrators: dict[str, AnyCalibrator] = {}
    fit_notes: dict[str, list[str]] = {}
    refusals: dict[str, ShiftError] = {}
    accuracies: dict[str, dict[str, tuple[float, float]]] = {}  # where classes may change

    def measure_on_all(name: str, fitted: AnyCalibrator, seed: int) -> None:
        measured = adapt_to_sets(fitted, adapt, batch)
        for dataset, (test, truth) in tests.items():
            try:
                outcomes = compute_outcomes(measured, fitted.select_views(test), truth, chosen)
            except ShiftError as error:
                refusals[name] = error
                return
            values = compute_values(outcomes, chosen)
            results.extend(Result(name, dataset, key, x, seed) for key, x in values.items())
            if not fitted.keeps_class:
                before = float((test.classes == check_labels(truth, test)).double().mean())
                after = float(outcomes.correct.mean())
                accuracies.setdefault(name, {}).setdefault(dataset, (before, after))
            if replicates is not None:
                replicates.add(name, dataset, outcomes)
        calibrators.setdefault(name, fitted)
        fit_notes.setdefault(name, []).append(fitted.fit_note)

    total, done = sum(seeds if record.is_random else 1 for record in records), 0
    for record in records:
        for seed in range(seeds):
            if seed and not record.is_random:
                results += repeat_results(results, record.name, seed)
                continue
            if progress is not None:
                progress(record.name, done, total)
            fitted = fit_method(record, *cal, seed=seed)
            if adapt:
                with suppress(ShiftError):  # which adapting then tells
                    fitted.learn_shift(*cal)
            measure_on_all(record.name, fitted, seed)
            done += 1
    for name, other in others.items():
        measure_on_all(name, other, 0)
        for seed in range(1, seeds):
            results += repeat_results(results, name, seed)
    if not results:
        raise next(iter(refusals.values()))
    if bootstrap is not None and replicates is not None:
        replicates.reference = bootstrap.resolve(list(calibrators)).reference
        results = replicates.attach(results)
    notes = [*describe_class_changes(accuracies), *gather_notes(fit_notes)]
    notes += [f"Left out: {error}." for error in refusals.values()]
    return MethodComparison(results, calibrators, notes)


def repeat_results(results: Sequence[Result], name: str, seed: int) -> list[Result]:
    """The results of the first seed for another one, of a method that draws nothing at random."""
    return [row._replace(seed=seed) for row in results if row.calibrator == name and not row.seed]


class BeforeAfter(NamedTuple):
    """Results by metric: of the classifier's own confidence, of the calibrated one, the change."""

    before: dict[str, Result]
    after: dict[str, Result]
    change: dict[str, Result]


def measure_before_and_after(
    calibrator: MeasuredCalibrator,
    dataset: str,
    predictions: Predictions,
    labels: AnyArray,
    metrics: str | Sequence[str] | None = None,
    bootstrap: Bootstrap | None = None,
) -> BeforeAfter:
    """The chosen metrics, or all, without and with calibration, and how they change."""
    names = resolve_metrics(metrics)
    pair: dict[str, MeasuredCalibrator | None] = {"before": None, "after": calibrator}
    outcomes = {
        name: compute_outcomes(one, predictions, labels, names) for name, one in pair.items()
    }
    results = [
        Result(name, dataset, key, value, 0)
        for name, one in outcomes.items()
        for key, value in compute_values(one, names).items()
    ]
    replicates = None
    if bootstrap is not None:
        pairwise = Bootstrap(bootstrap.resamples, bootstrap.seed, "before").resolve(list(pair))
        replicates = Replicates(pairwise, {dataset: len(predictions)}, names, len(pair))
        for name, one in outcomes.items():
            replicates.add(name, dataset, one)
        results = replicates.attach(results)
    before, after = (
        {row.metric: row._replace(calibrator=title) for row in results if row.calibrator == name}
        for name, title in (("before", "uncalibrated"), ("after", calibrator.title))
    )
    change = {}
    for key in names:
        value = after[key].value - before[key].value
        change[key] = Result("change", dataset, key, value, 0)
        if replicates is not None:
            first, second = (replicates.values[name, dataset, key][0] for name in pair)
            ends = interval(value, second - first)
            # One pair is one test: nothing to correct for.
            p = after[key].p
            change[key] = change[key]._replace(low=ends.low, high=ends.high, p=p, p_holm=p)
    return BeforeAfter(before, after, change)


def fit_uncalibrated(predictions: Predictions, labels: AnyArray) -> Calibrator:
    """The classifier's own confidence, as a calibrator for predictions of as many classes."""
    # Without their shift: a fit needs rows that are not shifted, but this one learns nothing.
    return calibrator("uncalibrated").fit(Predictions(predictions.logits), labels)


def fit_method(
    method: str | Method, predictions: Predictions, labels: AnyArray, seed: int = 0
) -> Calibrator:
    """A method fitted with its own arguments, and with this seed if it takes one."""
    record = find_record(method)
    arguments: dict[str, Any] = {"seed": seed} if record.is_random else {}
    if CALIBRATORS.get(record.name) is record:
        return calibrator(record.name, **arguments).fit(predictions, labels)
    return build_method(record, **arguments).fit(predictions, labels)
