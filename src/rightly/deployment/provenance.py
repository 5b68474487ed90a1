"""What a calibrator was fitted on: written into files, and checked against a classifier."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rightly.calibrators import Calibrator
from rightly.calibrators.shift_adaptation import ShiftAdaptation
from rightly.classifiers import Classifier, Preprocessing
from rightly.decisions.decision import ADAPTED
from rightly.deployment.metadata import FORMAT, VERSION
from rightly.monitoring.stream import RANGE_LEVEL

SHIFT_FORMULAS = {
    "of_images": "shift_estimate = clip(mean of shift_score, limits) * n / (n + noise), n images",
    "expected_accuracy": "mean confidence +- quantile * sqrt(mean of confidence * (1 - confidence) "
    "/ n + missed); missed = mean of misses^2 * (1 + 1/k) * max(1, |shift_estimate| / root mean "
    "square of kind_estimates)^4, k kinds",
    "confidence": "s = log-odds of unadapted_confidence; "
    "confidence = sigmoid(s + (weights[0] + weights[1] * s + weights[2] * |e|) * e), "
    "e = shift_estimate",
}


def describe_adaptation(adaptation: ShiftAdaptation) -> dict[str, Any]:
    """What a caller needs to estimate the shift of its images, and to adapt confidence to it.

    The reference, one number per class, is in the graph.
    """
    constants = asdict(adaptation.constants(RANGE_LEVEL))
    return {"estimate": float(adaptation.estimate), **constants, "formulas": SHIFT_FORMULAS}


def describe_model(
    calibrator: Calibrator, classifier: Classifier, class_names: Sequence[str] | None
) -> dict[str, Any]:
    """The metadata of a calibrated classifier, as plain values."""
    return describe_calibrator(calibrator) | {
        "class_names": None if class_names is None else list(class_names),
        "preprocessing": classifier.preprocessing.as_dict(),
        "classifier": {"name": classifier.name, "fingerprint": classifier.fingerprint},
    }


def describe_calibrator(calibrator: Calibrator) -> dict[str, Any]:
    """The metadata of a calibrator without its classifier."""
    from rightly import __version__

    record = calibrator.record
    source = record.get("classifier") or {}
    names = calibrator.class_names
    return {
        "format": FORMAT,
        "version": VERSION,
        "rightly": __version__,
        "method": calibrator.title,
        "arguments": dict(calibrator.arguments),
        "keeps_class": calibrator.keeps_class,
        "has_temperature": calibrator.has_temperature,
        "class_count": calibrator.class_count,
        "class_names": None if names is None else list(names),
        "views": list(calibrator.view_names),
        "preprocessing": source.get("preprocessing"),
        "classifier": {name: source.get(name) for name in ("name", "fingerprint")},
        "calibration": record.get("calibration"),
        "decision": None if calibrator.decision is None else calibrator.decision.to_dict(),
        "sets": _describe_sets(calibrator),
        "passes": record.get("passes", 1.0 + len(calibrator.view_names)),
        **({"adapted": record["adapted"]} if "adapted" in record else {}),
    }


def _describe_sets(calibrator: Calibrator) -> dict[str, Any] | None:
    """Nominal coverage of prediction sets, and what voids it."""
    if calibrator.sets is None:
        return None
    void = ADAPTED if calibrator.is_adapted else None
    return calibrator.sets.describe() | {"void": void}


def expected_preprocessing(calibrator: Calibrator) -> Preprocessing | None:
    """How the images were shown that the calibrator was fitted on, where that is known."""
    source = calibrator.record.get("classifier") or {}
    values = source.get("preprocessing")
    return None if values is None else Preprocessing.from_dict(values)


def check_classifier(calibrator: Calibrator, classifier: Classifier) -> None:
    """Refuses a classifier other than the one whose predictions the calibrator was fitted on."""
    source = calibrator.record.get("classifier") or {}
    fingerprint = source.get("fingerprint")
    if fingerprint is not None and fingerprint != classifier.fingerprint:
        raise ValueError(
            f"{calibrator.title} was fitted on predictions of "
            f"{source.get('name') or 'a classifier'} with weights {fingerprint[:12]}, but "
            f"{classifier.name} has weights {classifier.fingerprint[:12]}: load the same "
            "classifier, or collect its predictions and fit again"
        )
    expected = expected_preprocessing(calibrator)
    if expected is not None and expected != classifier.preprocessing:
        raise ValueError(
            f"{calibrator.title} was fitted on images shown as {expected}, but {classifier.name} "
            f"is given them as {classifier.preprocessing}: use the same preprocessing"
        )
    # Names that came with the images may differ from the classifier's own; its weights are proof.
    names = classifier.class_names if fingerprint is None else None
    check_classes(calibrator, classifier.class_count, names)


def check_described(metadata: Mapping[str, Any], calibrator: Calibrator, path: object) -> None:
    """Refuses a calibrator other than the one that a file's metadata describe."""
    described = (metadata["method"], metadata["class_count"], tuple(metadata["views"]))
    if described != (calibrator.title, calibrator.class_count, calibrator.view_names):
        method, class_count, views = described
        raise ValueError(
            f"{path} describes {method} of {class_count} classes with views {list(views)}, but the "
            f"calibrator is {calibrator.title} of {calibrator.class_count} classes with views "
            f"{list(calibrator.view_names)}: use the two that were written together"
        )


def check_classes(calibrator: Calibrator, count: int | None, names: Sequence[str] | None) -> None:
    """Refuses another number of classes, or other names."""
    expected = calibrator.class_count
    for other in (count, None if names is None else len(names)):
        if other is not None and other != expected:
            raise ValueError(
                f"the classifier must have {expected} classes like the one {calibrator.title} was "
                f"fitted on, got {other}"
            )
    own = calibrator.class_names
    if own is not None and names is not None and tuple(names) != own:
        at = next(i for i, pair in enumerate(zip(own, names, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"the classifier must have the class names that {calibrator.title} was fitted with, "
            f"but class {at} is {names[at]!r} here and {own[at]!r} there"
        )
