"""Who a deployed model is: what travels with the file, and what must fit together."""

from collections.abc import Mapping, Sequence
from typing import Any

from rightly.calibrators import FittedCalibrator
from rightly.classifiers import Classifier, Preprocessing

FORMAT = "rightly-deployed"
VERSION = 1


def identity_of(
    calibrator: FittedCalibrator, classifier: Classifier, class_names: Sequence[str] | None
) -> dict[str, Any]:
    """All that a file says about itself, as plain values."""
    identity = identity_without_classifier(calibrator)
    return identity | {
        "class_names": None if class_names is None else list(class_names),
        "preprocessing": classifier.preprocessing.as_dict(),
        "classifier": {"name": classifier.name, "fingerprint": classifier.fingerprint},
    }


def identity_without_classifier(calibrator: FittedCalibrator) -> dict[str, Any]:
    """What a calibrator's own file says about itself."""
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
        "class_count": calibrator.class_count,
        "class_names": None if names is None else list(names),
        "views": list(calibrator.view_names),
        "preprocessing": source.get("preprocessing"),
        "classifier": {name: source.get(name) for name in ("name", "fingerprint")},
        "calibration": record.get("calibration"),
        "threshold": _threshold(calibrator),
        "passes": record.get("passes", 1.0 + len(calibrator.view_names)),
    }


def _threshold(calibrator: FittedCalibrator) -> dict[str, Any] | None:
    if calibrator.threshold is None:
        return None
    recorded = dict(calibrator.record.get("threshold") or {})
    if recorded.pop("threshold", None) != calibrator.threshold:
        recorded = {}  # set by hand since: what was measured for another one does not hold
    return {"value": calibrator.threshold, **recorded}


def expected_preprocessing(calibrator: FittedCalibrator) -> Preprocessing | None:
    """How the images were shown that the calibrator was fitted on, where that is known."""
    source = calibrator.record.get("classifier") or {}
    values = source.get("preprocessing")
    return None if values is None else Preprocessing.from_dict(values)


def must_match(calibrator: FittedCalibrator, classifier: Classifier) -> None:
    """Refuses a classifier other than the one whose predictions the calibrator was fitted on."""
    source = calibrator.record.get("classifier") or {}
    known = source.get("fingerprint")
    if known is not None and known != classifier.fingerprint:
        raise ValueError(
            f"{calibrator.title} was fitted on predictions of {source.get('name')} with weights "
            f"{known[:12]}, but {classifier.name} has weights {classifier.fingerprint[:12]}: "
            "load the same classifier, or collect its predictions and fit again"
        )
    expected = expected_preprocessing(calibrator)
    if expected is not None and expected != classifier.preprocessing:
        raise ValueError(
            f"{calibrator.title} was fitted on images shown as {expected}, but {classifier.name} "
            f"is given them as {classifier.preprocessing}: use the same preprocessing"
        )
    # Names that came with the images may differ from the classifier's own; its weights are proof.
    names = classifier.class_names if known is None else None
    must_have_classes(calibrator, classifier.class_count, names)


def must_have_classes(
    calibrator: FittedCalibrator, count: int | None, names: Sequence[str] | None
) -> None:
    """Refuses another number of classes, or other names."""
    if count is not None and count != calibrator.class_count:
        raise ValueError(
            f"the classifier must have {calibrator.class_count} classes like the one "
            f"{calibrator.title} was fitted on, got {count}"
        )
    own = calibrator.class_names
    if own is not None and names is not None and tuple(names) != own:
        at = next(i for i, pair in enumerate(zip(own, names, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"the classifier must have the class names that {calibrator.title} was fitted with, "
            f"but class {at} is {names[at]!r} here and {own[at]!r} there"
        )


def checked_identity(values: Any, path: object) -> Mapping[str, Any]:
    """What a file says about itself, if this version can read it."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(
            f"{path} must be a file that rightly export wrote, but it carries no word of it: "
            "export it with rightly export --graft"
        )
    if values.get("version") != VERSION:
        raise ValueError(
            f"{path} has format version {values.get('version')}, but this rightly reads "
            f"{VERSION}: use the rightly that wrote it, or export again"
        )
    try:
        Preprocessing.from_dict(values["preprocessing"])
        int(values["class_count"]), list(values["views"]), float(values["passes"])
        if values["threshold"] is not None:
            float(values["threshold"]["value"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has a damaged description: {error!r}") from error
    return values
