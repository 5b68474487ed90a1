"""Measures whose inputs and options are checked at the door, once for all metrics."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any

from rightly.checks import (
    check_confidence,
    check_count,
    check_probabilities,
    check_share,
)
from rightly.shapes import AnyArray

Measure = Callable[..., float]


def check_options(measure: Measure, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a measure beside its two inputs: bins, or shares by their names."""
    known = list(signature(measure).parameters)[2:]
    checked = dict(options)
    for name, value in options.items():
        if name not in known:
            title = getattr(measure, "__name__", "this metric")
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise TypeError(f"{name} is no option of {title}, which {takes}")
        if name == "bins":
            checked[name] = check_count(name, value)
        elif name in ("coverage", "risk"):
            check_share(name, value)
    return checked


def _name_options(measure: Measure, values: tuple[Any, ...]) -> dict[str, Any]:
    """The options that were given by position."""
    names = list(signature(measure).parameters)[2:]
    if len(values) > len(names):
        title = getattr(measure, "__name__", "this metric")
        raise TypeError(f"{title} takes {2 + len(names)} arguments, got {2 + len(values)}")
    return dict(zip(names, values, strict=False))


def validate_confidence(measure: Measure) -> Measure:
    """Checks (confidence, correct), and the options."""

    @wraps(measure)
    def check_and_measure(
        confidence: AnyArray, correct: AnyArray, *args: Any, **options: Any
    ) -> float:
        options = check_options(measure, _name_options(measure, args) | options)
        return float(measure(*check_confidence(confidence, correct), **options))

    return check_and_measure


def validate_probabilities(measure: Measure) -> Measure:
    """Checks (probabilities, labels), and the options."""

    @wraps(measure)
    def check_and_measure(
        probabilities: AnyArray, labels: AnyArray, *args: Any, **options: Any
    ) -> float:
        options = check_options(measure, _name_options(measure, args) | options)
        return float(measure(*check_probabilities(probabilities, labels), **options))

    return check_and_measure
