"""All checks, over a calibration set and test sets."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rightly.checks import check_share
from rightly.evaluation.examination.findings import ERROR, Finding
from rightly.evaluation.examination.labelling import (
    find_bad_labels,
    find_missing_classes,
    find_negated,
    find_other_numbering,
    find_unexpected_accuracy,
    find_unrelated,
)
from rightly.evaluation.examination.pairing import (
    find_bad_views,
    find_equal_sets,
    find_leaks,
    find_unshifted,
)
from rightly.evaluation.examination.sample_size import find_few
from rightly.evaluation.examination.scores import (
    find_bad_scores,
    find_log_probabilities,
    find_no_logits,
)
from rightly.predictions import Predictions, check_labels, load
from rightly.predictions.arrays import SUFFIXES, read_array
from rightly.predictions.npz import read_arrays
from rightly.predictions.parquet import open_shards, read_columns

Examined = tuple[Predictions, Tensor | None]
NO_LABELS = "save them with labels: rightly.save(path, predictions, labels)"


def examine(
    cal: Any,
    tests: Mapping[str, Any] | None = None,
    *,
    expected_accuracy: float | None = None,
    name: str = "cal",
    labels: Mapping[str, str | os.PathLike[str]] | None = None,
    probabilities: bool = False,
) -> tuple[Finding, ...]:
    """Find what is wrong with calibration data and test sets, paths or (predictions, labels).

    In a pair, predictions may also be an array of logits as it came. `expected_accuracy` is what
    the classifier reaches on images like the calibration images; `name` is what findings call
    the calibration data. For paths, `labels` maps names of data sets to files of labels, and
    `probabilities` says what arrays hold, as in `load`. Nothing is changed.
    """
    if expected_accuracy is not None:
        check_share("expected_accuracy", expected_accuracy)
    findings: list[Finding] = []

    def read(title: str, source: Any) -> Examined | None:
        file = (labels or {}).get(title)
        return _open(title, source, findings, labels=file, probabilities=probabilities)

    opened = read(name, cal)
    if opened is not None:
        findings += _examine_set(name, *opened, expected_accuracy, is_cal=True)
    sets: dict[str, Predictions] = {}
    for title, source in (tests or {}).items():
        test = read(title, source)
        if test is None:
            continue
        sets[title] = test[0]
        findings += _examine_set(title, *test)
        if opened is not None:
            findings += find_leaks(title, opened[0], test[0])
    findings += find_equal_sets(sets)
    return tuple(findings)


def _open(name: str, source: Any, findings: list[Finding], **how: Any) -> Examined | None:
    """A data set; None, and a finding, where its arrays are not what they should be."""
    if isinstance(source, str | os.PathLike):
        try:
            return load(source, **how)
        except (TypeError, ValueError) as error:
            logits, labels = _read_raw(Path(source))
            findings.append(_explain(name, logits, labels, error))
            return None
    if not isinstance(source, tuple) or len(source) != 2:
        raise TypeError(
            f"{name} must be a path or (predictions, labels), got {type(source).__name__}"
        )
    try:
        given, labels = source
        predictions = given if isinstance(given, Predictions) else Predictions(given)
        return predictions, None if labels is None else check_labels(labels, predictions)
    except (TypeError, ValueError) as error:
        raw = given.logits if isinstance(given, Predictions) else torch.as_tensor(given)
        findings.append(_explain(name, raw, None if labels is None else np.asarray(labels), error))
        return None


def _read_raw(path: Path) -> tuple[Tensor | None, np.ndarray | None]:
    """Logits and labels as they are stored, whatever they are; None for what is not there."""
    if path.is_dir():
        shards, settings = open_shards(path)
        parts = [read_columns(shard, settings, ["logits", "label"]) for shard in shards]
        arrays = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        arrays["labels"] = arrays.pop("label")
    elif path.suffix == ".csv":
        return None, None
    elif path.suffix in SUFFIXES:
        stored = read_array(path)
        arrays = stored if isinstance(stored, dict) else {"logits": np.asarray(stored)}
    else:
        arrays = read_arrays(path)
    logits = arrays.get("logits")
    is_usable = logits is not None and logits.ndim == 2 and logits.dtype.kind == "f" and logits.size
    return torch.as_tensor(logits) if is_usable else None, arrays.get("labels")


def _explain(
    name: str, logits: Tensor | None, labels: np.ndarray | None, error: Exception
) -> Finding:
    """Why arrays cannot be predictions with labels."""
    finding = None
    if logits is not None and logits.ndim == 2 and logits.is_floating_point():
        finding = find_no_logits(name, logits) or find_log_probabilities(name, logits)
        if finding is None and labels is not None:
            finding = find_bad_labels(name, logits, labels)
    if finding is not None:
        return replace(finding, severity=ERROR)
    found, _, remedy = str(error).rpartition(": ")
    return Finding(name, "unusable", ERROR, found or str(error), remedy if found else "mend it")


def _examine_set(
    name: str,
    predictions: Predictions,
    labels: Tensor | None,
    expected_accuracy: float | None = None,
    is_cal: bool = False,
) -> Iterator[Finding]:
    for finding in find_bad_scores(name, predictions):
        # What was declared to be probabilities has their logarithms as logits.
        if finding.name != "log_probabilities" or not predictions.source.probabilities:
            yield finding
    yield from find_bad_views(name, predictions)
    yield from find_unshifted(name, predictions)
    rows = predictions.unshifted()
    if labels is None:
        if is_cal:
            yield Finding(name, "no_labels", ERROR, "there are no labels to fit on", NO_LABELS)
        return
    if not bool(rows.any()):
        return
    yield from _examine_labels(
        name, predictions[rows].to("cpu"), labels[rows].cpu(), expected_accuracy, is_cal
    )


def _examine_labels(
    name: str, images: Predictions, labels: Tensor, expected_accuracy: float | None, is_cal: bool
) -> Iterator[Finding]:
    """Of images as they are. Where labels are wrong, nothing else is said about them."""
    checks = (find_negated, find_other_numbering, find_unrelated)
    wrong = next((found for check in checks if (found := check(name, images, labels))), None)
    if wrong is not None:
        yield wrong
        return
    if expected_accuracy is not None:
        unexpected = find_unexpected_accuracy(name, images, labels, expected_accuracy)
        if unexpected is not None:
            yield unexpected
    if is_cal:
        missing = find_missing_classes(name, images, labels)
        if missing is not None:
            yield missing
    yield from find_few(name, images, labels)
