"""Prediction sets on test sets: how often they hold the true class, and how large they are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64

from rightly.calibrators import Calibrator
from rightly.decisions import exact_interval
from rightly.evaluation.measurement import adapt_in_batches
from rightly.predictions import Predictions
from rightly.tensor_shapes import Labels


@dataclass(frozen=True)
class ClassCoverage:
    """How often sets hold the true class where it is this one."""

    number: int
    name: str | None
    samples: int
    coverage: float
    low: float  # exact 95 % interval, of this class alone
    high: float


@dataclass(frozen=True)
class SetQuality:
    """Size of the sets of one test set, and their coverage; None where none is claimed."""

    mean_size: float
    empty: float  # share of sets without any class
    single: float  # share of sets of one class
    coverage: float | None = None
    coverage_low: float | None = None  # exact 95 % interval (Clopper and Pearson, 1934)
    coverage_high: float | None = None
    classes: tuple[ClassCoverage, ...] = ()  # true classes, the least covered first


def measure_sets(
    fitted: Calibrator,
    predictions: Predictions,
    labels: Labels,
    adapt: bool | int = False,
) -> SetQuality:
    """Of a calibrator with sets; without coverage where it is adapted."""
    assert fitted.sets is not None
    batches = adapt_in_batches(fitted, predictions, adapt)
    probabilities = torch.cat([adapted.probabilities(batch) for adapted, batch in batches])
    members = fitted.sets.contains(probabilities, predictions.logits)
    sizes = members.sum(-1)
    mean_size, empty, single = (float(x.double().mean()) for x in (sizes, sizes == 0, sizes == 1))
    if adapt is not False or fitted.is_adapted:
        return SetQuality(mean_size, empty, single)
    covered = members.gather(1, labels[:, None]).squeeze(1).cpu().numpy()
    names = predictions.class_names or fitted.class_names
    classes = cover_classes(covered, labels.cpu().numpy(), names)
    share = float(covered.mean())
    ends = exact_interval(int(covered.sum()), len(covered))
    return SetQuality(mean_size, empty, single, share, *ends, classes)


def cover_classes(
    covered: Bool[np.ndarray, " n"],
    labels: Int64[np.ndarray, " n"],
    names: Sequence[str] | None = None,
) -> tuple[ClassCoverage, ...]:
    """Coverage of each true class, the least covered first: by the upper ends of the intervals,
    so that no class leads for having few samples."""
    counts, hits = np.bincount(labels), np.bincount(labels, covered)
    found = []
    for k in np.flatnonzero(counts).tolist():
        n, held = int(counts[k]), int(hits[k])
        name = None if names is None else names[k]
        found.append(ClassCoverage(k, name, n, held / n, *exact_interval(held, n)))
    return tuple(sorted(found, key=lambda one: (one.high, one.coverage)))


def describe_set_quality(
    fitted: Calibrator, quality: Mapping[str, SetQuality]
) -> dict[str, Any] | None:
    """Nominal coverage and what was measured, as plain values."""
    if fitted.sets is None:
        return None
    tests = {name: asdict(one) for name, one in quality.items()}
    return {"nominal": fitted.sets.describe(), "tests": tests}
