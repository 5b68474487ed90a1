"""Values that every classifier has, as one array, and what they are over classifiers.

A mean over other classifiers is another mean: methods and test sets that some classifier lacks take
no part, and are named.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rightly.evaluation.results import (
    Result,
    average_seeds,
    compute_spread,
    mean_of_defined,
    rank_values,
    unique,
)
from rightly.metrics import METRICS
from rightly.resampling import Interval, interval

MEAN = "mean of test sets"
FEWEST = 3  # classifiers for an interval: two redrawn give their own values as its ends

Means = Float[np.ndarray, "classifiers methods datasets metrics"]
Floors = Float[np.ndarray, "classifiers methods datasets"]


class MeanResult(NamedTuple):
    """A method's mean over classifiers on one test set, or on the mean of all of them.

    The interval is for the mean of classifiers like these; nan where there are not three. `rank` is
    the mean of the ranks within classifiers. The floor is the mean ECE that the method would have
    if it were perfectly calibrated; `within_noise` counts the classifiers in which its ECE is
    below what noise alone reaches 95 times in 100.
    """

    calibrator: str
    dataset: str
    metric: str
    mean: float
    low: float
    high: float
    spread: float  # standard deviation over classifiers
    rank: float
    floor: float = math.nan
    within_noise: int = 0


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """Means over seeds, by classifier, method, test set (last their mean) and metric."""

    classifiers: Sequence[str]
    methods: Sequence[str]
    datasets: Sequence[str]
    metrics: Sequence[str]
    values: Means
    floors: Floors
    highs: Floors  # the floors' upper ends
    missing: Sequence[str]  # sentences on what not every classifier has

    @cached_property
    def ranks(self) -> Means:
        """Of the methods within each classifier; nan where a metric has no best or no value."""
        by_method = np.moveaxis(self.values, 1, 2)  # (classifiers, datasets, methods, metrics)
        of_metrics = [
            rank_values(by_method[..., k], METRICS[metric].lower_is_better)
            for k, metric in enumerate(self.metrics)
        ]
        return np.moveaxis(np.stack(of_metrics, -1), 2, 1)

    def average(self, resamples: int, seed: int) -> list[MeanResult]:
        """One row a method, test set and metric, with intervals by resampling classifiers."""
        count = len(self.classifiers)
        resampled = self._resample(resamples, seed) if count >= FEWEST else None
        rows = []
        for d, dataset in enumerate(self.datasets):
            for m, method in enumerate(self.methods):
                for k, metric in enumerate(self.metrics):
                    at = self.values[:, m, d, k]
                    mean, ends = float(at.mean()), Interval(math.nan, math.nan)
                    if resampled is not None:
                        ends = interval(mean, resampled[:, m, d, k], METRICS[metric].range)
                    spread = compute_spread(at)
                    rank = mean_of_defined(self.ranks[:, m, d, k])
                    row = MeanResult(method, dataset, metric, mean, *ends, spread, rank)
                    if metric == "ece":
                        within = int((at <= self.highs[:, m, d]).sum())
                        floor = float(self.floors[:, m, d].mean())
                        row = row._replace(floor=floor, within_noise=within)
                    rows.append(row)
        return rows

    def _resample(self, resamples: int, seed: int) -> np.ndarray:
        """Means of classifiers drawn with replacement, the same for all.

        Spread out by sqrt(n / (n - 1)): redrawing n values understates their variance by as much,
        which matters where they are few (Hesterberg, 2015).
        """
        n = len(self.classifiers)
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(n, np.full(n, 1 / n), resamples) / n
        flat = self.values.reshape(n, -1)
        mean = flat.mean(0)
        means = mean + (drawn @ flat - mean) * math.sqrt(n / (n - 1))
        return means.reshape(-1, *self.values.shape[1:])


def build_grid(results: Mapping[str, Sequence[Result]]) -> ValueGrid:
    """The values of the methods and test sets that every classifier has."""
    rows = {name: list(of_classifier) for name, of_classifier in results.items()}
    means = {name: average_seeds(of_classifier) for name, of_classifier in rows.items()}
    floors = {
        name: {
            row[:2]: (row.floor, row.floor_high)
            for row in reversed(of_classifier)
            if row.metric == "ece"
        }
        for name, of_classifier in rows.items()
    }
    classifiers = list(rows)
    everything = [row for of_classifier in rows.values() for row in of_classifier]
    metrics = unique(row.metric for row in everything)
    datasets, lacking_sets = _split_common(
        unique(row.dataset for row in everything),
        {name: {row.dataset for row in of} for name, of in rows.items()},
    )
    if not datasets:
        raise ValueError(
            "directory must hold a test set that every classifier has, but there is none in "
            "common: give the same name to the same test set, or name classifiers= that share one"
        )
    methods, lacking_methods = _split_common(
        unique(row.calibrator for row in everything),
        {name: {row.calibrator for row in of} for name, of in rows.items()},
    )
    if not methods:
        raise ValueError(
            "methods must hold one that every classifier has, but none could be fitted for all: "
            "name methods= that need only what all of the data have"
        )

    def gather(look_up: Mapping[str, Mapping[Any, float]], *last: str) -> np.ndarray:
        return np.array(
            [[[look_up[c][(m, d, *last)] for d in datasets] for m in methods] for c in classifiers]
        )

    values = np.stack([gather(means, metric) for metric in metrics], -1)
    if "ece" in metrics:
        low, high = (
            gather({c: {key: ends[i] for key, ends in of.items()} for c, of in floors.items()})
            for i in (0, 1)
        )
    else:
        low = high = np.full(values.shape[:3], np.nan)
    if len(datasets) > 1:
        values = np.concatenate([values, values.mean(2, keepdims=True)], 2)
        low = np.concatenate([low, low.mean(2, keepdims=True)], 2)
        # Noise of a mean is less than the mean noise: no upper end is known.
        high = np.concatenate([high, np.full_like(high[:, :, :1], np.nan)], 2)
        datasets = [*datasets, MEAN]
    missing = [
        *_describe_lacking("is not averaged", lacking_sets),
        *_describe_lacking("is left out", lacking_methods),
    ]
    return ValueGrid(classifiers, methods, datasets, metrics, values, low, high, missing)


def _split_common(
    names: Sequence[str], has: Mapping[str, set[str]]
) -> tuple[list[str], dict[str, list[str]]]:
    """The names that every classifier has, and who lacks the others."""
    lacking = {
        name: [classifier for classifier, own in has.items() if name not in own] for name in names
    }
    common = [name for name in names if not lacking[name]]
    return common, {name: of for name, of in lacking.items() if of}


def _describe_lacking(what: str, lacking: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"{name} {what}: {', '.join(of)} {'does' if len(of) == 1 else 'do'} not have it."
        for name, of in lacking.items()
    ]
