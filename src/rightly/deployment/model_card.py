"""Model cards of files, folders and calibrators, measured on test sets."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rightly.calibrators import Calibrator, check_calibrator, load_calibrator
from rightly.decisions.outcome import apply_decision
from rightly.deployment.card_markdown import CardRow, render_block, render_card
from rightly.deployment.metadata import CALIBRATOR_FILE, read_config
from rightly.deployment.provenance import check_described, describe_calibrator
from rightly.deployment.runtime import SUFFIXES, open_exported
from rightly.evaluation.data_sets import DataSet, load_test_sets
from rightly.evaluation.leakage import CalibrationData, check_test_sets
from rightly.evaluation.measurement import TABLE_METRICS, measure
from rightly.evaluation.set_quality import measure_sets
from rightly.files import replace_nan
from rightly.predictions import Predictions, check_labels
from rightly.reporting.set_notes import describe_quality
from rightly.shapes import AnyArray

AnyPath = str | os.PathLike[str]


def make_card(
    model: AnyPath | Calibrator,
    tests: Mapping[str, DataSet] | None = None,
    calibrator: AnyPath | Calibrator | None = None,
    *,
    block_only: bool = False,
    any_classifier: bool = False,
    allow_overlap: bool = False,
) -> str:
    """The card of an exported file, a saved folder or a calibrator, measured on the test sets.

    A test set is a path or predictions with labels; each shift in it is measured by itself. An
    exported file takes images, so measuring it needs its `calibrator`. `block_only` leaves out
    the header that the Hub reads. Test sets of another classifier, or with more than 1 % of the
    calibration rows, are refused unless `any_classifier` or `allow_overlap`.
    """
    metadata = read_metadata(model)
    rows = []
    if tests:
        fitted = _open_calibrator(model, calibrator)
        check_described(metadata, fitted, model)
        loaded = load_test_sets(tests, fitted.view_names)
        known = [CalibrationData.of_calibrator(fitted)]
        check_test_sets(known, loaded, any_classifier, allow_overlap)
        for name, (predictions, labels) in loaded.items():
            rows.append(measure_row(fitted, name, predictions, labels))
    return render_block(metadata, rows) if block_only else render_card(metadata, rows)


def read_metadata(model: AnyPath | Calibrator) -> dict[str, Any]:
    """The metadata of a .onnx or .pt2 file, a saved folder or a calibrator."""
    if not isinstance(model, str | os.PathLike):
        return describe_calibrator(check_calibrator(model))
    path = Path(model)
    if path.is_dir():
        return read_config(path)
    if path.suffix in SUFFIXES:
        return dict(open_exported(path).metadata)
    return describe_calibrator(load_calibrator(path))


def _open_calibrator(
    model: AnyPath | Calibrator, calibrator: AnyPath | Calibrator | None
) -> Calibrator:
    chosen = model if calibrator is None else calibrator
    if not isinstance(chosen, str | os.PathLike):
        return check_calibrator(chosen)
    path = Path(chosen)
    if path.suffix in SUFFIXES:
        raise ValueError(
            f"tests need calibrator=, because {path} takes images: give the calibrator that it "
            "was exported with"
        )
    return load_calibrator(path / CALIBRATOR_FILE if path.is_dir() else path)


def measure_row(
    fitted: Calibrator, name: str, predictions: Predictions, labels: AnyArray
) -> CardRow:
    """A calibrator measured on one test set, before and after; at its threshold if it has one."""
    truth = check_labels(labels, predictions)
    correct = (fitted.classes(predictions) == truth).cpu().numpy()
    decided = ""
    if fitted.decision is not None and fitted.decision.threshold is not None:
        confidence = fitted.confidence(predictions).double().cpu().numpy()
        decided = " ".join(apply_decision(fitted.decision, confidence, correct).describe())
    sets = None if fitted.sets is None else measure_sets(fitted, predictions, truth)
    return CardRow(
        name,
        len(predictions),
        float(correct.mean()),
        _measure(None, predictions, labels),
        _measure(fitted, predictions, labels),
        decided,
        "" if sets is None else describe_quality(sets),
    )


def _measure(
    fitted: Calibrator | None, predictions: Predictions, labels: AnyArray
) -> dict[str, float | None]:
    """The metrics of the table; None for nan, which neither JSON nor the Hub knows."""
    values: dict[str, float | None] = replace_nan(
        measure(fitted, predictions, labels, TABLE_METRICS)
    )
    return values
