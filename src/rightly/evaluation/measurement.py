"""From a calibrator and a test set to outcomes and values, adapted to the test set or as it is."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from rightly.calibrators import CALIBRATORS, Calibrator, Method, calibrator
from rightly.calibrators.shift_adaptation import ShiftError
from rightly.evaluation.replicates import Replicates
from rightly.evaluation.results import Result, unique
from rightly.metrics import METRICS, Outcomes, measure_all
from rightly.predictions import Predictions, check_labels
from rightly.resampling import interval
from rightly.shapes import AnyArray

TABLE_METRICS = ("ece", "brier", "ks", "auroc")  # the columns of the paper's tables
ADAPTER = "docs/from-your-own-package.md shows how to wrap what another library fits"


def check_adapt(adapt: bool | int) -> None:
    """Validate `adapt`: False, True (each test set as one batch), or the rows of a batch."""
    if isinstance(adapt, bool):
        return
    if not isinstance(adapt, int) or adapt < 1:
        raise ValueError(
            "adapt must be False, True (each test set as one batch) or the rows of a batch from "
            f"1, got {adapt!r}: pass for instance 64"
        )


def adapt_in_batches(
    calibrator: Calibrator, predictions: Predictions, adapt: bool | int = True
) -> Iterator[tuple[Calibrator, Predictions]]:
    """Yield the calibrator adapted to each batch, in row order, and that batch.

    Without `adapt`, the calibrator as it is and all rows.
    """
    if adapt is False:
        yield calibrator, predictions
    elif adapt is True:
        yield calibrator.adapt(predictions), predictions
    else:
        for start in range(0, len(predictions), adapt):
            batch = predictions[start : start + adapt]
            # The shift estimates of small batches are often chance, and each would be told of.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="the shift estimate of this batch")
                adapted = calibrator.adapt(batch)
            yield adapted, batch


def resolve_metrics(metrics: str | Iterable[str] | None) -> list[str]:
    """The metrics of one name or several; None and "all" stand for every one."""
    if metrics is None or metrics == "all":
        return list(METRICS)
    names = [metrics] if isinstance(metrics, str) else metrics
    return unique(METRICS.find(name).name for name in names)


def measure(
    calibrator: Calibrator | None,
    predictions: Predictions,
    labels: AnyArray,
    metrics: str | Sequence[str] = "all",
) -> dict[str, float]:
    """The chosen metrics on one test set; without a calibrator, of the classifier itself."""
    names = resolve_metrics(metrics)
    return compute_values(compute_outcomes(calibrator, predictions, labels, names), names)


def compute_outcomes(
    calibrator: Calibrator | None,
    predictions: Predictions,
    labels: AnyArray,
    metrics: Sequence[str],
    adapt: bool | int = False,
) -> Outcomes:
    """Confidence and correctness on one test set; probabilities only if a metric reads them.

    Without a calibrator, those of the classifier itself.
    """
    truth = check_labels(labels, predictions)
    reads_all = any(METRICS.find(name).inputs == "probabilities" for name in metrics)
    probabilities = None
    if calibrator is None:
        classes, confidence = predictions.classes, predictions.confidence
        if reads_all:
            probabilities = predictions.logits.double().softmax(-1)
    else:
        classes, parts = calibrator.classes(predictions), []
        for adapted, batch in adapt_in_batches(calibrator, predictions, adapt):
            of_classes = adapted.probabilities(batch) if reads_all else None
            parts.append((adapted.confidence(batch), of_classes))
        confidence = torch.cat([own for own, _ in parts])
        if reads_all:
            probabilities = torch.cat([p for _, p in parts if p is not None]).double()
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


class BeforeAfter(NamedTuple):
    """Results by metric: of the classifier's own confidence, of the calibrated one, the change."""

    before: dict[str, Result]
    after: dict[str, Result]
    change: dict[str, Result]


def compare_outcomes(
    title: str,
    dataset: str,
    before: Outcomes,
    after: Outcomes,
    metrics: Sequence[str],
    resamples: int | None = None,
    seed: int = 0,
) -> BeforeAfter:
    """The metrics without and with the calibrator of this title, and how they change.

    With `resamples`, values have intervals and changes a paired test.
    """
    pair = {"before": before, "after": after}
    results = [
        Result(name, dataset, key, value, seed)
        for name, one in pair.items()
        for key, value in compute_values(one, metrics).items()
    ]
    replicates = None
    if resamples is not None:
        sizes = {dataset: len(after.correct)}
        replicates = Replicates(resamples, seed, sizes, metrics, len(pair))
        for name, one in pair.items():
            replicates.add(name, dataset, one)
        results = replicates.attach(results, "before")
    own, calibrated = (
        {row.metric: row._replace(calibrator=shown) for row in results if row.calibrator == name}
        for name, shown in (("before", "uncalibrated"), ("after", title))
    )
    change = {}
    for key in metrics:
        value = calibrated[key].value - own[key].value
        change[key] = Result("change", dataset, key, value, seed)
        if replicates is not None:
            first, second = (replicates.values[name, dataset, key][0] for name in pair)
            ends = interval(value, second - first)
            # One pair is one test: nothing to correct for.
            p = calibrated[key].p
            change[key] = change[key]._replace(low=ends.low, high=ends.high, p=p, p_holm=p)
    return BeforeAfter(own, calibrated, change)


def find_record(method: str | Method) -> Method:
    """The record of a method given by name or as a record of its own."""
    return CALIBRATORS.find(method) if isinstance(method, str) else method


def fit_method(
    method: str | Method,
    predictions: Predictions,
    labels: AnyArray,
    seed: int = 0,
    adaptable: bool = False,
) -> Calibrator:
    """Fit a method with its own arguments, and with this seed if it takes one.

    An `adaptable` one also learns what adapting needs, if the data allow it.
    """
    record = find_record(method)
    arguments: dict[str, Any] = {"seed": seed} if record.is_random else {}
    is_registered = CALIBRATORS.get(record.name) is record
    built = calibrator(record.name, **arguments) if is_registered else record.build(**arguments)
    if not isinstance(built, Calibrator):
        raise TypeError(
            f"methods[{record.name!r}] must build a rightly.Calibrator, got "
            f"{type(built).__name__}: {ADAPTER}"
        )
    built.fit(predictions, labels)
    if adaptable:
        with suppress(ShiftError):  # which adapting then raises
            built.learn_shift(predictions, labels)
    return built
