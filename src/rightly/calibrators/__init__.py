"""Calibrators: from predictions to the probability that each one is correct.

`CALIBRATORS` lists them, `calibrator(name)` builds one, `load_calibrator(path)` reads one back.
"""

import os
from pathlib import Path
from typing import Any

from rightly.calibrators import serialization
from rightly.calibrators.base import Calibrator as Calibrator
from rightly.calibrators.base import NotFittedError as NotFittedError
from rightly.calibrators.cascade import Cascade as Cascade
from rightly.calibrators.fitted import AnyCalibrator as AnyCalibrator
from rightly.calibrators.fitted import FittedCalibrator as FittedCalibrator
from rightly.calibrators.fitted import as_fitted as as_fitted
from rightly.calibrators.methods import CALIBRATORS as CALIBRATORS
from rightly.calibrators.methods import Method as Method


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
    """A calibrator that was saved, with its threshold and record."""
    header, tensors = serialization.read(Path(path))
    try:
        built = calibrator(header["method"], **header["arguments"])
        serialization.restore(built, header, tensors)
        threshold, record = header.get("threshold"), header.get("record") or {}
        if not isinstance(threshold, float | None) or not isinstance(record, dict):
            raise ValueError(f"threshold and record must be a number and a table, got {threshold}")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has a damaged header: {error}") from error
    return FittedCalibrator(built, threshold, record)
