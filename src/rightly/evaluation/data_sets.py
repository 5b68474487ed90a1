"""Data sets: predictions with labels, from memory or a file; shifted rows are sets of their own."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from rightly.predictions import Predictions, check_labels, load
from rightly.predictions.rows import warn_at_chance
from rightly.shapes import AnyArray

Path = str | os.PathLike[str]
DataSet = Path | tuple[Predictions, AnyArray]
LabelledSet = tuple[Predictions, Tensor]  # labels (n,): sets of different n meet in one call
TestSets = Mapping[str, LabelledSet]


def load_data_set(
    source: Any, views: Sequence[str] | None = None, argument: str = "data set"
) -> LabelledSet:
    """Predictions with labels, from a path or a pair; with these views only, where some are named.

    `argument` is what an error calls the data set. Warns if accuracy is not above chance.
    """
    predictions, labels = _read_data_set(source, views, argument)
    _warn_at_chance(argument, predictions, labels)
    return predictions, labels


def _read_data_set(source: Any, views: Sequence[str] | None, argument: str) -> LabelledSet:
    given = load(source) if isinstance(source, str | os.PathLike) else source
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Predictions)):
        raise TypeError(
            f"{argument} must be a path or (predictions, labels), got {type(source).__name__}: "
            "wrap logits as (rightly.Predictions(logits), labels)"
        )
    predictions = given[0]
    labels = check_labels(given[1], predictions, argument)
    if views and predictions.view_names != tuple(views):
        predictions = predictions.with_views(views)
    return predictions, labels


def open_data_sets(tests: Any, views: Sequence[str] | None = None) -> dict[str, LabelledSet]:
    """Predictions with labels by name, from paths or pairs, as they were stored."""
    if not isinstance(tests, Mapping):
        raise TypeError(
            "tests must map names to data sets, such as {'test': (predictions, labels)}, "
            f"got {type(tests).__name__}"
        )
    if not tests:
        raise ValueError("tests must name at least one data set, got none")
    return {
        name: _read_data_set(source, views, f"tests[{name!r}]") for name, source in tests.items()
    }


def load_test_sets(tests: Any, views: Sequence[str] | None = None) -> dict[str, LabelledSet]:
    """The test sets of data sets by name; one with shifted rows makes several."""
    sets: dict[str, LabelledSet] = {}
    for name, whole in open_data_sets(tests, views).items():
        _warn_at_chance(name, *whole)
        parts = split_by_shift(name, *whole)
        for title, part in parts.items():
            if title in sets:
                raise ValueError(
                    f"tests must make a different name for each test set, got {title!r} twice: "
                    "rename one, or merge the shifts of one name into one data set"
                )
            sets[title] = part
    return sets


def _warn_at_chance(name: str, predictions: Predictions, labels: Tensor) -> None:
    """Of the images as they are, where there are any: a shift may leave nothing to recognise."""
    as_is = predictions.unshifted()
    if bool(as_is.any()):
        warn_at_chance(name, predictions[as_is], labels[as_is])


def split_by_shift(name: str, predictions: Predictions, labels: AnyArray) -> dict[str, LabelledSet]:
    """One test set for the images as they are, and one for each shift they were collected under."""
    classes = check_labels(labels, predictions)
    if predictions.shift is None:
        return {name: (predictions, classes)}
    sets = {}
    for value in predictions.shift.unique().tolist():
        rows = predictions.shift == value
        title = name_shift(name, value, predictions.shift_names)
        sets[title] = (predictions[rows], classes[rows])
    return sets


def name_shift(name: str, value: int, shift_names: Sequence[str]) -> str:
    """What the rows of one shift are called: like the data set if unshifted, else by the shift."""
    if not value:
        return name
    return shift_names[value - 1] if len(shift_names) >= value else f"{name} shift {value}"


def measure_accuracies(tests: Mapping[str, LabelledSet]) -> dict[str, float]:
    """The classifier's accuracy by test set."""
    return {
        name: float((predictions.classes == labels).double().mean())
        for name, (predictions, labels) in tests.items()
    }
