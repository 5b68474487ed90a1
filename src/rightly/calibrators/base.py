"""The contract of a calibrator: from predictions to the probability that each one is correct."""

import copy
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar, cast, final

import torch
from torch import Tensor, nn

from rightly.calibrators import decision_fitting, serialization, shift_adaptation, shift_fitting
from rightly.calibrators.answers import CalibratedOutputs as CalibratedOutputs
from rightly.calibrators.answers import NotFittedError as NotFittedError
from rightly.calibrators.checks import (
    bound_confidence,
    check_answer,
    check_class_count,
    check_inputs,
    check_like_fitted,
    settle_probabilities,
    warn_if_one_sided,
)
from rightly.calibrators.conformal.sets import ConformalSets, Sets
from rightly.calibrators.shift_adaptation import (
    FinalOutputs,
    InterceptSlope,
    ShiftAdaptation,
    ShiftError,
    finalise_outputs,
)
from rightly.calibrators.solvers.confidence_inverse import inverse_temperature_for
from rightly.calibrators.solvers.execution import single_threaded
from rightly.calibrators.solvers.temperature import scaled_softmax
from rightly.calibrators.stored_tensors import Stored
from rightly.checks import check_type
from rightly.decisions import Decision
from rightly.decisions.decision import ADAPTED, describe_void
from rightly.decisions.expected_accuracy import ExpectedAccuracy
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import RowHashes, sort_rows
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels, Logits, PerSample, PerSampleBool

Self = TypeVar("Self", bound="Calibrator")

# What may be set from outside: types, in words, and how to get one.
STATE: dict[str, tuple[Any, str, str]] = {
    "decision": (Decision | None, "a Decision or None", "use Decision.at"),
    "sets": (ConformalSets | None, "ConformalSets or None", "use decide"),
    "shift": (ShiftAdaptation | None, "a ShiftAdaptation or None", "use learn_shift"),
    "record": (Mapping, "a table of plain values", ""),
}

CACHE_ENTRIES = 2**21  # logits up to here fit into a cache, where threads only get in the way


class Calibrator(nn.Module, ABC):
    """Estimates the probability that each prediction is correct.

    A subclass writes `learn` and `compute_confidence`, or those of TemperatureCalibrator and
    VectorCalibrator. All that it learned is in its buffers, by flat names (`store`). The `compute_`
    methods are unchecked: for calibrators made of others, and for graphs being traced.
    """

    needs: tuple[str, ...] = ()  # fields of Predictions without which it cannot work
    uses: tuple[str, ...] = ()  # fields it reads where it was fitted with them
    uses_shifted_rows = False
    sorts_rows = False  # True where folds, batches or turns go by row numbers: see `sort_rows`
    is_pointwise = True  # False where a sample's confidence depends on the rest of its batch
    has_temperature = False  # True where it divides logits by a temperature of its own
    keeps_class = True  # False where `probabilities` may move the argmax
    fits_classes: int | None = None  # the number of classes it is for, if it is for one only
    has_own_adaptation = False  # True where `adapt` to a batch is left to `adapt_to`

    # What `learn` stores, by name or pattern: a loaded file must hold that; None checks no names.
    stores: Mapping[str, Stored] | None = None

    # Its entry in the registry and the arguments it was built with: set by `rightly.calibrator`.
    method: str | None = None
    arguments: Mapping[str, Any] = {}

    # What it was fitted on: predictions that differ in these are refused.
    sample_count: int | None = None
    class_count: int | None = None
    view_names: tuple[str, ...] = ()
    feature_count: int | None = None
    class_names: tuple[str, ...] | None = None

    decision: Decision | None = None  # when to accept a prediction
    sets: ConformalSets | None = None  # what prediction sets are made by
    record: Mapping[str, Any] = {}  # classifier, calibration data and what was measured on them
    shift: ShiftAdaptation | None  # what `learn_shift` learned, and the estimate adapted to
    correction: InterceptSlope | None  # in place of it, once adapted with labels
    no_shift: str | None = None  # why `learn_shift` could not learn it

    def __init__(self) -> None:
        super().__init__()
        self.register_module("shift", None)
        self.register_module("correction", None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in STATE:
            return super().__setattr__(name, value)
        check_type(name, value, *STATE[name])
        if name == "shift":
            return super().__setattr__(name, value)
        return object.__setattr__(self, name, value)  # sets are no part: saved by themselves

    @final
    def fit(self: Self, predictions: Predictions, labels: AnyArray) -> Self:
        """Fit to held-out predictions whose labels are known."""
        check_inputs(predictions, self.needs, self.title)
        check_class_count(predictions, self.fits_classes, self.title)
        classes = check_labels(labels, predictions)
        rows = predictions.unshifted()
        if not rows.any():
            raise ValueError(
                "shift must be 0 for some rows to fit on, but every row is shifted: "
                "add the images as they are"
            )
        self.shift = self.correction = self.no_shift = self.class_count = None
        self.decision, self.sets, self.record = None, None, {}
        if not self.uses_shifted_rows and not rows.all():
            predictions, classes = predictions[rows], classes[rows]
        warn_if_one_sided(predictions.classes == classes, self.title)
        if self.sorts_rows:
            predictions, classes = sort_rows(predictions, classes)
        in_cache = predictions.logits.numel() <= CACHE_ENTRIES
        with torch.no_grad(), single_threaded() if in_cache else nullcontext():
            self.to(predictions.logits.device)
            self.learn(predictions, classes)
        self.sample_count = int(rows.sum())
        self.class_count = predictions.class_count
        self.class_names = predictions.class_names
        self.view_names = predictions.view_names if self.uses_views else ()
        features = predictions.features if "features" in self.needs + self.uses else None
        self.feature_count = None if features is None else features.shape[1]
        return self

    @final
    def learn_shift(self: Self, predictions: Predictions, labels: AnyArray) -> Self:
        """Learn from the calibration data what `adapt` needs; it is fitted twice more for that.

        A ShiftError says what the data lack; the calibrator remembers it as `no_shift`.
        """
        predictions = self.select_views(predictions)
        self.check(predictions)
        classes = check_labels(labels, predictions)
        self.shift = self.correction = self.no_shift = None
        try:
            with torch.no_grad():
                learned = shift_fitting.learn_shift_adaptation(self, predictions, classes)
        except ShiftError as error:
            self.no_shift = str(error)
            raise
        self.shift = learned.to(predictions.logits.device)
        return self

    @final
    def adapt(self: Self, predictions: Predictions, labels: AnyArray | None = None) -> Self:
        """Return a copy adapted to an unlabelled batch, or by a few labels.

        Without labels, confidence moves to the shift estimate of the batch, which needs
        `learn_shift` first. With labels of unshifted rows, intercept and slope of its log-odds are
        corrected. Each replaces whatever it was adapted to before. Guarantees are for the old data:
        the decision is void, and labels drop it and the prediction sets.
        """
        if labels is None:
            copied = cast(Self, shift_adaptation.adapt_to_batch(self, predictions))
            estimate = 0.0 if copied.shift is None else float(copied.shift.estimate)
            batch = {"samples": len(predictions), "shift_estimate": estimate}
            copied.record = {**self.record, "adapted": batch}
            copied.decision = None if self.decision is None else self.decision.voided(ADAPTED)
            return copied
        self.check(predictions)
        truth, rows = check_labels(labels, predictions), predictions.unshifted()
        if not rows.any():
            raise ValueError(
                "shift must be 0 for some rows to adapt to, but every row is shifted: give images "
                "as they come where the calibrator is used"
            )
        adapted = copy.deepcopy(self)
        adapted.shift = adapted.no_shift = None
        adapted.correction = shift_fitting.learn_intercept_slope(
            self, predictions[rows], truth[rows]
        )
        adapted.decision = adapted.sets = None
        adapted.record = self._record_labels(adapted, predictions, truth)
        made = {"decision": self.decision, "prediction sets": self.sets}
        dropped = [name for name, value in made.items() if value is not None]
        if dropped:
            warnings.warn(
                f"{self.title} drops its {' and '.join(dropped)}, made for the data that it was "
                "fitted on: make them anew from other labelled samples of the new data",
                UserWarning,
                stacklevel=2,
            )
        return adapted

    def _record_labels(
        self, adapted: "Calibrator", predictions: Predictions, labels: Labels
    ) -> dict[str, Any]:
        """The record with what a copy was adapted to, and the hashes of these rows too."""
        assert adapted.correction is not None
        rows = predictions.unshifted()
        hashes, known = RowHashes.compute(predictions), self.record.get("calibration_rows")
        if known is not None:
            hashes = RowHashes.from_record(known).merge(hashes)
        correct = self.classes(predictions[rows]) == labels[rows]
        return {
            **self.record,
            "calibration_rows": hashes.to_record(),  # test sets with the new rows are refused too
            "adapted": {
                "samples": len(correct),
                "accuracy": float(correct.double().mean()),
                "intercept": float(adapted.correction.intercept),
                "slope": float(adapted.correction.slope),
            },
        }

    @final
    def decide(
        self: Self,
        predictions: Predictions,
        labels: AnyArray,
        *,
        threshold: float | None = None,
        accuracy: float | None = None,
        costs: Mapping[str, float] | None = None,
        confidence_level: float = 0.95,
        coverage: float | None = None,
        set_score: str = "lac",
        class_conditional: bool = False,
    ) -> Self:
        """Attach a decision, prediction sets or both, from rows that it was not fitted on.

        A threshold given, guaranteed to reach `accuracy`, or of least `costs`; prediction sets that
        hold the true class with probability `coverage`. What is not asked for stays as it is.
        """
        options = decision_fitting.DecisionOptions.validate(
            threshold=threshold,
            accuracy=accuracy,
            costs=costs,
            confidence_level=confidence_level,
            coverage=coverage,
            set_score=set_score,
            class_conditional=class_conditional,
        )
        decision, sets = decision_fitting.decide(self, predictions, labels, options)
        self.decision, self.sets = decision or self.decision, sets or self.sets
        return self

    @final
    def expected_accuracy(
        self, unlabelled: Predictions, confidence_level: float = 0.9
    ) -> ExpectedAccuracy:
        """Accuracy expected on a batch without labels: value, low, high."""
        return shift_adaptation.expected_accuracy(self, unlabelled, confidence_level)

    def adapt_to(self, unlabelled: Predictions) -> None:
        """Adapt in place to a batch without labels, where `has_own_adaptation`."""
        raise NotImplementedError

    @property
    def is_adapted(self) -> bool:
        return self.shift is not None and self.shift.is_adapted

    @property
    def adjustment(self) -> ShiftAdaptation | InterceptSlope | None:
        """What changes the confidence that was fitted: labels, or a batch without."""
        return self.correction or (self.shift if self.is_adapted else None)

    @final
    @torch.no_grad()
    def classes(self, predictions: Predictions) -> Labels:
        """Predicted class of each sample, the one that `confidence` is about."""
        self.check(predictions)
        return self.compute_classes(predictions)

    @final
    @torch.no_grad()
    def confidence(self, predictions: Predictions) -> PerSample:
        """Probability that each predicted class is right."""
        self.check(predictions)
        own, adjustment = self.compute_confidence(predictions), self.adjustment
        confidence = own if adjustment is None else adjustment.adjust(own)
        return check_answer(self.title, "confidence", bound_confidence(confidence, predictions))

    @final
    @torch.no_grad()
    def temperature(self, predictions: Predictions) -> PerSample:
        """What each row's logits are divided by to give its confidence."""
        self.check(predictions)
        if self.adjustment is None:
            temperature = self.compute_temperature(predictions).double()
        else:
            adapted = self.adjustment.adjust(self.compute_confidence(predictions))
            temperature = _temperature_for(predictions, adapted)
        return check_answer(self.title, "temperature", temperature)

    @final
    @torch.no_grad()
    def probabilities(self, predictions: Predictions) -> Logits:
        """A probability for every class; the predicted class has the largest."""
        self.check(predictions)
        if self.adjustment is not None:
            kept = self.compute(predictions).probabilities
        else:
            found = self.compute_probabilities(predictions)
            kept = settle_probabilities(found, self.classes_of(found, predictions), predictions)
        return check_answer(self.title, "probabilities", kept)

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with all state, for `rightly.load_calibrator`."""
        serialization.save(Path(path), self)

    @final
    def select_views(self, predictions: Predictions) -> Predictions:
        """The predictions with the views that it was fitted on, whatever others they have."""
        if not self.view_names or predictions.view_names == self.view_names:
            return predictions
        return predictions.with_views(self.view_names)

    @final
    def accept(self, predictions: Predictions) -> PerSampleBool:
        """Whether the confidence of each prediction reaches the threshold."""
        if self.threshold is None:
            raise ValueError(
                f"{self.title} has no threshold to accept by: set decision, or fit with "
                "threshold= or accuracy="
            )
        return self.confidence(predictions) >= self.threshold

    @final
    @torch.no_grad()
    def prediction_sets(
        self, predictions: Predictions, coverage: float | None = None, score: str | None = None
    ) -> Sets:
        """Whether each class is in the prediction set of each sample (split conformal prediction).

        In data like the held-out rows, sets hold the true class with probability `coverage`; after
        `adapt` no coverage is claimed. A set may be empty. `coverage` and `score` (lac, aps, or
        raps where it was fitted for that) are as decided, unless given.
        """
        if self.sets is None:
            raise ValueError(
                f"{self.title} has no held-out scores to make prediction sets by: fit with "
                "coverage=, or call decide(predictions, labels, coverage=0.9) with rows that it "
                "was not fitted on"
            )
        return self.sets.find(self.probabilities(predictions), predictions.logits, coverage, score)

    @property
    def threshold(self) -> float | None:
        """Confidence from which predictions are accepted; None where there is no decision."""
        return None if self.decision is None else self.decision.threshold

    @property
    def uses_views(self) -> bool:
        return "view_logits" in self.needs + self.uses

    @property
    def title(self) -> str:
        return self.method or type(self).__name__

    @property
    def is_fitted(self) -> bool:
        return self.class_count is not None

    @property
    def fit_note(self) -> str:
        """What should be known about this fit, where it did not do what the method is for."""
        return ""

    def __repr__(self) -> str:
        if not self.is_fitted:
            return f"<{self.title}, not fitted>"
        views = f" with {len(self.view_names)} views" if self.view_names else ""
        samples = f"{self.sample_count:,} samples of {self.class_count} classes"
        note = ", adapted to a batch" if self.is_adapted else ""
        note += ", adapted with labels" if self.correction is not None else ""
        note += f", {self.fit_note}" if self.fit_note else ""
        name = (self.record.get("classifier") or {}).get("name")
        note += f", classifier {name}" if name else ""
        note += "" if self.threshold is None else f", accepts from {self.threshold:.4g}"
        if self.decision is not None and self.decision.has_guarantee and self.decision.void:
            note += f", {describe_void(self.decision.void)}"
        return f"<{self.title}, fitted on {samples}{views}{note}>"

    @final
    def store(self, **tensors: Tensor) -> None:
        """Keep what was learned, under names that also stand in the saved file."""
        for name, tensor in tensors.items():
            if hasattr(self, name) and name not in self._buffers:
                raise ValueError(
                    f"{name} cannot be stored by {self.title}: every calibrator has an attribute "
                    "of that name; choose another"
                )
            self.register_buffer(name, tensor.detach().clone())

    @final
    def stored(self) -> dict[str, Tensor]:
        return dict(self.named_buffers())

    @final
    def check(self, predictions: Predictions) -> None:
        """Refuses predictions unlike those it was fitted on, and follows them to their device."""
        if not self.is_fitted:
            raise NotFittedError(f"{self.title} is not fitted: call fit(predictions, labels) first")
        check_like_fitted(self, predictions)
        self.to(predictions.logits.device)

    @abstractmethod
    def learn(self, predictions: Predictions, labels: Labels) -> None:
        """Fits to checked predictions; all that is learned goes through `store`."""

    @abstractmethod
    def compute_confidence(self, predictions: Predictions) -> PerSample: ...

    def compute_classes(self, predictions: Predictions) -> Labels:
        return predictions.classes

    def classes_of(self, probabilities: Logits, predictions: Predictions) -> Labels:
        """`compute_classes` where probabilities are known."""
        return self.compute_classes(predictions)

    def compute_temperature(self, predictions: Predictions) -> PerSample:
        return _temperature_for(predictions, self.compute_confidence(predictions))

    def compute_probabilities(self, predictions: Predictions) -> Logits:
        inverse = self.compute_temperature(predictions).reciprocal()
        return scaled_softmax(predictions.logits, inverse)

    def compute_together(self, predictions: Predictions) -> CalibratedOutputs:
        """Classes and confidence, with the temperature or the probabilities if it has its own."""
        confidence = self.compute_confidence(predictions)
        return CalibratedOutputs(self.compute_classes(predictions), confidence)

    @final
    def compute(
        self, predictions: Predictions, shift_estimate: Tensor | None = None
    ) -> FinalOutputs:
        """All outputs, unchecked; adapted to a shift estimate, by default to its own."""
        adaptation = self.adjustment if shift_estimate is None else self.shift
        outputs = self.compute_together(predictions)
        return finalise_outputs(outputs, predictions, adaptation, shift_estimate)


def _temperature_for(predictions: Predictions, confidence: PerSample) -> PerSample:
    """The temperature at which softmax gives the largest logit this confidence."""
    inverse = inverse_temperature_for(predictions.logits, confidence, predictions.classes)
    return inverse.reciprocal()


def check_calibrator(calibrator: Any) -> Calibrator:
    """Refuse what is no fitted calibrator."""
    remedy = "load one with rightly.load_calibrator(path)"
    check_type("calibrator", calibrator, Calibrator, "a fitted rightly calibrator", remedy)
    if not calibrator.is_fitted:
        raise NotFittedError(
            f"{calibrator.title} is not fitted: call fit(predictions, labels) first"
        )
    return cast(Calibrator, calibrator)
