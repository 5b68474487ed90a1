"""Confidence and correctness without logits: from tables, to numbers with intervals."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rightly.checks import check_confidence
from rightly.evaluation.results import RESAMPLES, Bootstrap, Result
from rightly.metrics import METRICS, Outcomes, measure_all
from rightly.metrics.bootstrap import replicate_metrics
from rightly.resampling import draw_resamples, interval
from rightly.shapes import AnyArray

COLUMNS = ("confidence", "correct")
TRUTH = {"1": True, "true": True, "0": False, "false": False}


def read_outcomes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The columns confidence and correct of a .csv file; others are not looked at."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no table {path}")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a table with commas, in UTF-8: {error}") from error
    names = [name.strip() for name in header]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise ValueError(
            f"{path} must have the columns confidence and correct, but {' and '.join(missing)} "
            f"is missing: it has {names[:8]}; logits and probabilities need a calibrator, see "
            "rightly fit"
        )
    places = [names.index(name) for name in COLUMNS]
    confidence, correct = [], []
    for number, row in enumerate(rows, start=2):
        try:
            own, truth = (row[place].strip() for place in places)
            confidence.append(float(own))
            correct.append(TRUTH[truth.lower()])
        except (IndexError, KeyError, ValueError):
            raise ValueError(
                f"{path}, row {number}: confidence must be a number from 0 to 1 and correct one of "
                f"1, 0, true, false, got {row[:8]}"
            ) from None
    try:
        return check_confidence(confidence, correct)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def measure_outcomes(
    confidence: AnyArray,
    correct: AnyArray,
    metrics: Sequence[str] | None = None,
    bootstrap: Bootstrap | None = None,
    dataset: str = "",
) -> list[Result]:
    """Metrics of (confidence, correct), all of them by default, with intervals if asked."""
    c, a = check_confidence(confidence, correct)
    values = measure_all(c, a, metrics)
    results = [Result("", dataset, name, value, 0) for name, value in values.items()]
    if bootstrap is None:
        return results
    resamples = draw_resamples(len(c), bootstrap.resamples or RESAMPLES, bootstrap.seed)
    replicates = replicate_metrics(Outcomes(c, a), list(values), resamples)
    ends = {
        name: interval(value, replicates[name], METRICS[name].range)
        for name, value in values.items()
    }
    return [row._replace(low=ends[row.metric].low, high=ends[row.metric].high) for row in results]
