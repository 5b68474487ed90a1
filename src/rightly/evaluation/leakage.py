"""Test sets that tell nothing: predictions of another classifier, or calibration rows.

Each refusal can be overruled by the argument that it names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rightly.calibrators import Calibrator
from rightly.evaluation.data_sets import TestSets
from rightly.predictions import Predictions
from rightly.predictions.rows import MAX_OVERLAP, RowHashes

KINDS = {"image_hash": "images", "logits": "logits"}


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """What tells the data that a calibrator was fitted on from others, as far as it is known."""

    name: str | None = None  # of the classifier
    fingerprint: str | None = None
    rows: RowHashes | None = None

    @classmethod
    def of_predictions(cls, predictions: Predictions) -> "CalibrationData":
        return cls(None, predictions.fingerprint, RowHashes.compute(predictions))

    @classmethod
    def of_calibrator(cls, fitted: Calibrator) -> "CalibrationData":
        """What the calibrator's record holds: a sample of its rows."""
        source = fitted.record.get("classifier") or {}
        rows = fitted.record.get("calibration_rows")
        hashes = None if rows is None else RowHashes.from_record(rows)
        return cls(source.get("name"), source.get("fingerprint"), hashes)


def check_test_sets(
    known: Sequence[CalibrationData], tests: TestSets, any_classifier: bool, allow_overlap: bool
) -> None:
    """Refuses predictions of another classifier, and calibration rows."""
    for name, (predictions, _) in tests.items():
        for data in known:
            if not any_classifier:
                check_same_classifier(f"tests[{name!r}]", data, predictions.fingerprint)
            if not allow_overlap:
                _check_overlap(f"tests[{name!r}]", data, predictions)


def check_same_classifier(name: str, data: CalibrationData, fingerprint: str | None) -> None:
    """Refuses predictions whose classifier is known to be another one."""
    if data.fingerprint is None or fingerprint is None or fingerprint == data.fingerprint:
        return
    raise ValueError(
        f"{name} must hold predictions of the classifier that was calibrated, "
        f"{data.name or 'the one'} with fingerprint {data.fingerprint[:12]}, but has those of "
        f"another with fingerprint {fingerprint[:12]}: collect predictions of the same "
        "classifier, or insist with any_classifier=True"
    )


def _check_overlap(name: str, data: CalibrationData, predictions: Predictions) -> None:
    if data.rows is None:
        return
    share, kind = data.rows.measure_shared(predictions)
    if share > MAX_OVERLAP:
        raise ValueError(
            f"{name} must hold other samples than those that the calibrator is fitted on, but "
            f"{share:.1%} of its rows have the same {KINDS[kind]} as calibration rows, so results "
            "would look too good: give a test set of its own, or insist with allow_overlap=True"
        )
