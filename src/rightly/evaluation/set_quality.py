"""Prediction sets on test sets: how often they hold the true class, and how large they are."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rightly.calibrators import FittedCalibrator
from rightly.decisions import exact_interval
from rightly.evaluation.adapted_sets import MeasuredCalibrator
from rightly.evaluation.data_sets import TestSets
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels


@dataclass(frozen=True)
class SetQuality:
    """Size of the sets of one test set, and their coverage; None where none is claimed."""

    mean_size: float
    empty: float  # share of sets without any class
    single: float  # share of sets of one class
    coverage: float | None = None
    coverage_low: float | None = None  # exact 95 % interval (Clopper and Pearson, 1934)
    coverage_high: float | None = None


def measure_sets(
    fitted: FittedCalibrator, measured: MeasuredCalibrator, predictions: Predictions, labels: Labels
) -> SetQuality | None:
    """Of a calibrator as it is measured; None without sets, no coverage where it is adapted."""
    if fitted.sets is None:
        return None
    members = fitted.sets.contains(measured.probabilities(predictions), predictions.logits)
    sizes = members.sum(-1)
    mean_size, empty, single = (float(x.double().mean()) for x in (sizes, sizes == 0, sizes == 1))
    if measured is not fitted or fitted.calibrator.is_adapted:
        return SetQuality(mean_size, empty, single)
    covered = int(members.gather(1, labels[:, None]).sum())
    n = len(labels)
    low, high = exact_interval(covered, n)
    return SetQuality(mean_size, empty, single, covered / n, low, high)


def measure_all_sets(
    fitted: FittedCalibrator, measured: MeasuredCalibrator, tests: TestSets
) -> dict[str, SetQuality]:
    """By test set; empty for a calibrator without sets."""
    found = {name: measure_sets(fitted, measured, *test) for name, test in tests.items()}
    return {name: one for name, one in found.items() if one is not None}


def describe_set_quality(
    fitted: FittedCalibrator, quality: Mapping[str, SetQuality]
) -> dict[str, Any] | None:
    """What was promised and what was measured, as plain values."""
    if fitted.sets is None:
        return None
    tests = {name: asdict(one) for name, one in quality.items()}
    return {"promised": fitted.sets.describe(), "tests": tests}
