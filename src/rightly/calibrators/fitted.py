"""A calibrator ready for use: with a decision to accept by, and a record of its origin."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from rightly.calibrators import serialization
from rightly.calibrators.base import Calibrator, NotFittedError
from rightly.calibrators.cascade import Cascade
from rightly.calibrators.conformal.sets import ConformalSets
from rightly.calibrators.methods import CALIBRATORS
from rightly.checks import check_type
from rightly.decisions import Decision
from rightly.decisions.decision import ADAPTED
from rightly.decisions.expected_accuracy import ExpectedAccuracy
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import MAX_OVERLAP, RowHashes
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool


@final
class FittedCalibrator:
    """A fitted calibrator, when to accept its predictions, and where it comes from.

    It has the calls of a calibrator. `record` holds the classifier, the calibration data and what
    was measured on them, as plain values.
    """

    def __init__(
        self,
        calibrator: Calibrator,
        decision: Decision | None = None,
        record: Mapping[str, Any] | None = None,
        sets: ConformalSets | None = None,
    ) -> None:
        if not calibrator.is_fitted:
            raise NotFittedError(
                f"{calibrator.title} is not fitted: call fit(predictions, labels) first"
            )
        self.calibrator = calibrator
        check_type("decision", decision, Decision | None, "a Decision or None", "use Decision.at")
        self.decision = decision
        self.record: Mapping[str, Any] = dict(record or {})
        self.sets = sets  # what prediction sets are made by

    def classes(self, predictions: Predictions) -> Labels:
        """The predicted class of each sample, which `confidence` is about."""
        return self.calibrator.classes(predictions)

    def confidence(self, predictions: Predictions) -> PerSample:
        """Probability that each predicted class is right."""
        return self.calibrator.confidence(predictions)

    def temperature(self, predictions: Predictions) -> PerSample:
        """What each row's logits are divided by to give its confidence."""
        return self.calibrator.temperature(predictions)

    def probabilities(self, predictions: Predictions) -> Logits:
        """A probability for every class; the predicted class has the largest."""
        return self.calibrator.probabilities(predictions)

    def select_views(self, predictions: Predictions) -> Predictions:
        """The predictions with the views that it was fitted on, whatever others they have."""
        return self.calibrator.select_views(predictions)

    def accept(self, predictions: Predictions) -> PerSampleBool:
        """Whether the confidence of each prediction reaches the threshold."""
        if self.threshold is None:
            raise ValueError(
                f"{self.title} has no threshold to accept by: set decision, or fit with "
                "threshold= or accuracy="
            )
        return self.confidence(predictions) >= self.threshold

    def hold_out(
        self, predictions: Predictions, labels: AnyArray, **options: Any
    ) -> "FittedCalibrator":
        """One with prediction sets, from images that it was not fitted on.

        `options` are those of `ConformalSets.fit`: coverage, score, class_conditional.
        """
        fitted_on = RowHashes.from_record(self.record.get("calibration_rows") or {})
        shared, _ = fitted_on.measure_shared(predictions)
        if shared > MAX_OVERLAP:
            raise ValueError(
                f"predictions must be held out, but {shared:.0%} of them are among those that "
                f"{self.title} was fitted on: give others, or fit with coverage="
            )
        sets = ConformalSets.fit(self.calibrator, predictions, labels, **options)
        return FittedCalibrator(self.calibrator, self.decision, self.record, sets)

    def adapt(self, predictions: Predictions, labels: AnyArray | None = None) -> "FittedCalibrator":
        """Return a copy adapted to an unlabelled batch, or by a few labels, with a record of it.

        Thresholds and prediction sets were made for the old data: labels drop them.
        """
        adapted = self.calibrator.adapt(predictions, labels)
        if labels is None:
            estimate = 0.0 if adapted.shift is None else float(adapted.shift.estimate)
            batch = {"samples": len(predictions), "shift_estimate": estimate}
            record = {**self.record, "adapted": batch}
            decision = None if self.decision is None else self.decision.voided(ADAPTED)
            return FittedCalibrator(adapted, decision, record, self.sets)
        made = {"decision": self.decision, "prediction sets": self.sets}
        dropped = [name for name, value in made.items() if value is not None]
        if dropped:
            warnings.warn(
                f"{self.title} drops its {' and '.join(dropped)}, made for the data that it was "
                "fitted on: make them anew from other labelled samples of the new data",
                UserWarning,
                stacklevel=2,
            )
        return FittedCalibrator(adapted, None, self._record_labels(adapted, predictions, labels))

    def _record_labels(
        self, adapted: Calibrator, predictions: Predictions, labels: AnyArray
    ) -> dict[str, Any]:
        """The record with what a copy was adapted to, and the hashes of these rows too."""
        assert adapted.correction is not None
        rows = predictions.unshifted()
        truth = check_labels(labels, predictions)[rows]
        hashes = RowHashes.compute(predictions)
        known = self.record.get("calibration_rows")
        if known is not None:
            hashes = RowHashes.from_record(known).merge(hashes)
        return {
            **self.record,
            # So that test sets with the new rows are refused too.
            "calibration_rows": hashes.to_record(),
            "adapted": {
                "samples": len(truth),
                "accuracy": float((adapted.classes(predictions[rows]) == truth).double().mean()),
                "intercept": float(adapted.correction.intercept),
                "slope": float(adapted.correction.slope),
            },
        }

    def expected_accuracy(
        self, unlabelled: Predictions, confidence_level: float = 0.9
    ) -> ExpectedAccuracy:
        """Accuracy expected on a batch without labels: value, low, high."""
        return self.calibrator.expected_accuracy(unlabelled, confidence_level)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one safetensors file, for `rightly.load_calibrator`."""
        sets = None if self.sets is None else self.sets.to_saved()
        serialization.save(Path(path), self.calibrator, self.decision, self.record, sets)

    @property
    def threshold(self) -> float | None:
        return None if self.decision is None else self.decision.threshold

    @property
    def method(self) -> str | None:
        return self.calibrator.method

    @property
    def title(self) -> str:
        return self.calibrator.title

    @property
    def fit_note(self) -> str:
        return self.calibrator.fit_note

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.calibrator.arguments

    @property
    def needs(self) -> tuple[str, ...]:
        return self.calibrator.needs

    @property
    def keeps_class(self) -> bool:
        return self.calibrator.keeps_class

    @property
    def is_pointwise(self) -> bool:
        return self.calibrator.is_pointwise

    @property
    def class_count(self) -> int | None:
        return self.calibrator.class_count

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return self.calibrator.class_names

    @property
    def view_names(self) -> tuple[str, ...]:
        return self.calibrator.view_names

    @property
    def feature_count(self) -> int | None:
        return self.calibrator.feature_count

    def __repr__(self) -> str:
        accepts = "" if self.threshold is None else f", accepts from {self.threshold:.4g}"
        classifier = (self.record.get("classifier") or {}).get("name")
        source = f", classifier {classifier}" if classifier else ""
        return f"{repr(self.calibrator)[:-1]}{source}{accepts}>"


AnyCalibrator = Calibrator | FittedCalibrator


def as_fitted(calibrator: AnyCalibrator) -> FittedCalibrator:
    """The same with a place for decision and record, where it has none."""
    if isinstance(calibrator, FittedCalibrator):
        return calibrator
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"calibrator must be a fitted rightly calibrator, got {type(calibrator).__name__}: "
            "load one with rightly.load_calibrator(path)"
        )
    return FittedCalibrator(calibrator)


def calibrator(
    name: str, *, budget: float | None = None, first: str | None = None, **arguments: Any
) -> Calibrator:
    """An unfitted calibrator by its name or alias in the registry.

    With a budget, in mean forward passes per image, views are looked at only inside a deferral
    band of the confidence of the method called `first`, which needs none: by default the same
    method without views if it can do without, else temperature scaling.
    """
    method = CALIBRATORS.find(name)
    built = method.build(**arguments)
    if budget is not None:
        built.method = method.name
        first = CALIBRATORS.find(first or first_of(name)).name
        built = Cascade(calibrator(first), built, budget)
        arguments |= {"budget": budget, "first": first}
    built.method, built.arguments = method.name, dict(arguments)
    return built


def first_of(name: str) -> str:
    """What gives the confidence where a budget spares this method its views."""
    return "temperature_scaling" if "view_logits" in CALIBRATORS.find(name).needs else name


def load_calibrator(path: str | os.PathLike[str]) -> FittedCalibrator:
    """A calibrator that was saved, with its decision and record."""
    header, tensors = serialization.read(Path(path))
    if isinstance(header.get("method"), str) and header["method"] not in CALIBRATORS:
        raise ValueError(f"{path} {serialization.describe_unknown(header)}")
    try:
        built = calibrator(header["method"], **header["arguments"])
        own, held_out = serialization.split_sets(tensors)
        serialization.restore(built, header, own)
        sets = None
        if header["sets"] is not None or held_out:
            sets = ConformalSets.from_saved(header["sets"], held_out, header["class_count"])
        stored = header["decision"]
        decision = None if stored is None else Decision.from_dict(stored)
    except KeyError as error:
        raise ValueError(f"{path} has a damaged header: {error} is missing") from error
    except (TypeError, ValueError, RuntimeError, IndexError) as error:  # the last two: torch's
        raise ValueError(
            f"{path} holds no calibrator that can be used: {error}; fit it again"
        ) from error
    return FittedCalibrator(built, decision, header["record"], sets)
