"""Decisions and prediction sets of a fitted calibrator, from rows that it was not fitted on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rightly.calibrators.conformal.scores import check_score
from rightly.calibrators.conformal.sets import ConformalSets
from rightly.checks import check_fraction, check_share
from rightly.decisions import Decision
from rightly.decisions.costs import check_costs
from rightly.predictions import Predictions, check_labels
from rightly.predictions.rows import MAX_OVERLAP, RowHashes, first_row_per_image
from rightly.shapes import AnyArray
from rightly.tensor_shapes import Labels

if TYPE_CHECKING:
    from rightly.calibrators.base import Calibrator

HELD_OUT = "calibration samples held out of the fit"


class Outcome(NamedTuple):
    """Confidence and correctness of one row per image."""

    confidence: np.ndarray
    correct: np.ndarray


class DecisionOptions(NamedTuple):
    """The decision and prediction sets that are asked for, checked."""

    threshold: float | None = None
    accuracy: float | None = None
    costs: Mapping[str, float] | None = None
    confidence_level: float = 0.95
    coverage: float | None = None
    set_score: str = "lac"
    class_conditional: bool = False

    @classmethod
    def validate(cls, **options: Any) -> "DecisionOptions":
        wanted = cls(**options)
        given = {name: getattr(wanted, name) for name in ("threshold", "accuracy", "costs")}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise ValueError(f"{' and '.join(names)} exclude each other: give one of them")
        if wanted.threshold is not None:
            check_share("threshold", wanted.threshold)
        if wanted.accuracy is not None:
            check_fraction("accuracy", wanted.accuracy)
        check_fraction("confidence_level", wanted.confidence_level)
        if wanted.costs is not None:
            _check_costs(wanted.costs)
        check_score(wanted.set_score, "set_score")
        if wanted.coverage is not None:
            check_fraction("coverage", wanted.coverage)
        elif wanted.class_conditional or wanted.set_score != "lac":
            raise ValueError(
                "set_score and class_conditional are for prediction sets: pass coverage= too, for "
                "instance 0.9"
            )
        return wanted

    @property
    def has_decision(self) -> bool:
        return any(x is not None for x in (self.threshold, self.accuracy, self.costs))

    @property
    def needs_held_out(self) -> bool:
        return any(x is not None for x in (self.accuracy, self.costs, self.coverage))

    def make_decision(self, outcome: Outcome, measured_on: str) -> Decision | None:
        """The decision that is asked for, from outcomes of rows held out of the fit."""
        if self.costs is not None:
            amounts: dict[str, Any] = dict(self.costs)
            return Decision.least_cost(*outcome, **amounts, measured_on=measured_on)
        if self.accuracy is not None:
            return Decision.guarantee(
                *outcome,
                accuracy=self.accuracy,
                confidence_level=self.confidence_level,
                measured_on=measured_on,
            )
        if self.threshold is not None:
            return Decision.at(self.threshold, *outcome, measured_on=measured_on)
        return None


def _check_costs(costs: Mapping[str, float]) -> None:
    unknown = sorted(set(costs) - {"error", "review", "gain"})
    if unknown or not {"error", "review"} <= set(costs):
        raise ValueError(
            f"costs must name error and review, and may name gain, got {sorted(costs)}: pass "
            "for instance {'error': 50, 'review': 1}"
        )
    check_costs(**costs)


def compute_outcome(calibrator: "Calibrator", predictions: Predictions, labels: Labels) -> Outcome:
    """Confidence and correctness of unshifted images, one row per image."""
    rows = first_row_per_image(predictions)
    subset, truth = predictions[rows], labels[rows]
    confidence = calibrator.confidence(subset).double().cpu().numpy()
    return Outcome(confidence, (calibrator.classes(subset) == truth).cpu().numpy())


def decide(
    calibrator: "Calibrator", predictions: Predictions, labels: AnyArray, wanted: DecisionOptions
) -> tuple[Decision | None, ConformalSets | None]:
    """Decision and prediction sets from held-out rows; None of what is not asked for."""
    if not wanted.has_decision and wanted.coverage is None:
        raise ValueError(
            "decide needs something to decide by: pass threshold=, accuracy=, costs= or coverage="
        )
    predictions = calibrator.select_views(predictions)
    calibrator.check(predictions)
    truth = check_labels(labels, predictions)
    fitted_on = RowHashes.from_record(calibrator.record.get("calibration_rows") or {})
    shared, _ = fitted_on.measure_shared(predictions)
    if shared > MAX_OVERLAP:
        raise ValueError(
            f"predictions must be held out, but {shared:.0%} of them are among those that "
            f"{calibrator.title} was fitted on: give others, or fit with the same arguments, which "
            "holds some out"
        )
    if calibrator.is_adapted:
        raise ValueError(
            f"{calibrator.title} is adapted to a batch, so nothing is guaranteed: take the "
            "calibrator as it was fitted"
        )
    if not bool(predictions.unshifted().any()):
        raise ValueError("predictions must have unshifted rows, got shifted ones only: add images")
    decision = sets = None
    if wanted.has_decision:
        outcome = compute_outcome(calibrator, predictions, truth)
        decision = wanted.make_decision(outcome, HELD_OUT)
    if wanted.coverage is not None:
        sets = ConformalSets.fit(
            calibrator,
            predictions,
            truth,
            coverage=wanted.coverage,
            score=wanted.set_score,
            class_conditional=wanted.class_conditional,
        )
    return decision, sets
