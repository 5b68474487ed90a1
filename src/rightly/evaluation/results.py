"""Measured values: what they are worth beside a reference, and over several classifiers."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rightly.atomic_write import write_atomically
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import Interval, NoiseFloor, Values, holm, interval, paired_p

SIGNIFICANT = 0.05

T = TypeVar("T")
Key = tuple[str, str, str]  # calibrator, dataset, metric


class Result(NamedTuple):
    """One measured value, with what resampling the test set says about it.

    Interval and p values are of the mean over seeds, and so the same for each seed. `p` compares
    with the reference calibrator; `p_holm` is corrected for the number of calibrators compared.
    The floor is the ECE of labels drawn from the confidences: mean, and where 95 % lie below.
    """

    calibrator: str
    dataset: str
    metric: str
    value: float
    seed: int
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    floor: float = math.nan
    floor_high: float = math.nan


@dataclass(frozen=True)
class Bootstrap:
    """How intervals and tests are made; without a reference, the first calibrator is it."""

    resamples: int = 1000
    seed: int = 0
    reference: str | None = None


def with_intervals(
    rows: Sequence[Result],
    resampled: Mapping[Key, Sequence[Values]],
    floors: Mapping[tuple[str, str], NoiseFloor],
    reference: str,
) -> list[Result]:
    """The rows with intervals and tests, from each one's values on the same resamples."""
    values: dict[Key, list[float]] = {}
    for row in rows:
        values.setdefault(row[:3], []).append(row.value)
    means = {key: float(np.mean(found)) for key, found in values.items()}
    spread = {key: np.mean(found, 0) for key, found in resampled.items()}
    intervals: dict[Key, Interval] = {
        key: interval(means[key], spread[key], METRICS[key[2]].range) for key in means
    }
    p: dict[Key, float] = {}
    corrected: dict[Key, float] = {}
    for dataset, metric in unique((row.dataset, row.metric) for row in rows):
        base = (reference, dataset, metric)
        found = {
            key[0]: paired_p(means[key] - means[base], spread[key] - spread[base])
            for key in means
            if key[1:] == base[1:] and key != base and METRICS[metric].lower_is_better is not None
        }
        p |= {(name, dataset, metric): value for name, value in found.items()}
        corrected |= {(name, dataset, metric): value for name, value in holm(found).items()}
    nothing = NoiseFloor(math.nan, math.nan)
    return [
        row._replace(
            low=intervals[row[:3]].low,
            high=intervals[row[:3]].high,
            p=p.get(row[:3], math.nan),
            p_holm=corrected.get(row[:3], math.nan),
            floor=(floors.get(row[:2], nothing) if row.metric == "ece" else nothing).mean,
            floor_high=(floors.get(row[:2], nothing) if row.metric == "ece" else nothing).high,
        )
        for row in rows
    ]


@dataclass(frozen=True)
class MethodRank:
    """A calibrator over several classifiers; ranks count from 1, and ties share their mean."""

    calibrator: str
    mean_rank: float  # over classifiers, test sets and metrics
    mean: Mapping[str, float]  # of each metric, over classifiers and test sets
    spread: Mapping[str, float]  # its standard deviation over classifiers
    rank: Mapping[str, float]  # mean rank in each metric


def mean_ranks(rows: Mapping[str, Sequence[Result]]) -> list[MethodRank]:
    """Mean, spread and mean rank of the calibrators that every classifier has, best rank first.

    `rows` maps a classifier's name to what `compare` gave for it.
    """
    if not rows:
        raise ValueError("mean_ranks needs the rows of at least one classifier, got none")
    columns = {name: _cells(found) for name, found in rows.items()}
    wanted = unique(key[1:] for cells in columns.values() for key in cells)
    names = [
        name
        for name in unique(key[0] for cells in columns.values() for key in cells)
        if all((name, *place) in cells for cells in columns.values() for place in wanted)
    ]
    if not names:
        raise ValueError(
            "no calibrator was measured with the same metrics on the same test sets of every "
            "classifier: compare the same methods on the same names of test sets"
        )
    # (classifiers, places, calibrators), where a place is a test set and a metric
    values = np.array(
        [
            [[cells[(name, *place)] for name in names] for place in wanted]
            for cells in columns.values()
        ]
    )
    ranks = np.stack(
        [
            _ranks(values[:, i], METRICS[metric].lower_is_better)
            for i, (_, metric) in enumerate(wanted)
        ],
        1,
    )
    of = {
        m: [i for i, (_, metric) in enumerate(wanted) if metric == m]
        for m in unique(x[1] for x in wanted)
    }
    ranks_of_methods = [
        MethodRank(
            name,
            _mean(ranks[:, :, k]),
            {m: float(values[:, at, k].mean()) for m, at in of.items()},
            {m: _spread(values[:, at, k].mean(1)) for m, at in of.items()},
            {m: _mean(ranks[:, at, k]) for m, at in of.items()},
        )
        for k, name in enumerate(names)
    ]
    return sorted(ranks_of_methods, key=lambda one: (math.isnan(one.mean_rank), one.mean_rank))


def _cells(rows: Sequence[Result]) -> dict[Key, float]:
    """The mean over seeds of each calibrator, test set and metric."""
    values: dict[Key, list[float]] = {}
    for row in rows:
        values.setdefault(row[:3], []).append(row.value)
    return {key: float(np.mean(found)) for key, found in values.items()}


def _ranks(values: np.ndarray, lower_is_better: bool | None) -> np.ndarray:
    """Ranks along the last axis; nan where no order exists."""
    from scipy.stats import rankdata

    if lower_is_better is None:
        return np.full(values.shape, np.nan)
    return rankdata(values if lower_is_better else -values, axis=-1, nan_policy="propagate")


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def write_json(path: Path, rows: Sequence[Result], bootstrap: Bootstrap | None = None) -> None:
    """Writes rows for machines; what is not known is null."""
    plain = [
        {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in row._asdict().items()
        }
        for row in rows
    ]
    told = {"rows": plain, "bootstrap": None if bootstrap is None else vars(bootstrap)}
    text = json.dumps(told, indent=1) + "\n"
    write_atomically(path, lambda part: part.write_text(text))


def read_json(path: Path) -> list[Result]:
    """Rows that `write_json` wrote."""
    try:
        return [_row(plain) for plain in json.loads(path.read_text())["rows"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must be JSON that rightly compare --json wrote, got something else ({error})"
        ) from error


def _row(plain: Mapping[str, Any]) -> Result:
    known: dict[str, Any] = {
        key: math.nan if value is None else value for key, value in plain.items()
    }
    return Result(**known)


def unique(items: Iterable[T]) -> list[T]:
    """Without repetitions, in the order of first appearance."""
    return list(dict.fromkeys(items))
