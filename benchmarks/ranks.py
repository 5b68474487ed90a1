"""Mean ranks of calibrators over classifiers, test sets and metrics."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rightly.evaluation.ranking import compute_spread, mean_of_defined, rank_values
from rightly.evaluation.results import Result, average_seeds, unique
from rightly.metrics import METRICS


@dataclass(frozen=True)
class MethodRank:
    """A calibrator over several classifiers; ranks count from 1, and ties share their mean."""

    calibrator: str
    mean_rank: float  # over classifiers, test sets and metrics
    mean: Mapping[str, float]  # of each metric, over classifiers and test sets
    spread: Mapping[str, float]  # its standard deviation over classifiers
    rank: Mapping[str, float]  # mean rank in each metric


def mean_ranks(results: Mapping[str, Iterable[Result]]) -> list[MethodRank]:
    """Mean, spread and mean rank of the calibrators that every classifier has, best rank first.

    `results` maps a classifier's name to what was measured of its calibrators.
    """
    if not results:
        raise ValueError("mean_ranks needs the results of at least one classifier, got none")
    means = [average_seeds(of_classifier) for of_classifier in results.values()]
    # A place is a test set and a metric.
    places = unique(key[1:] for of_classifier in means for key in of_classifier)
    names = [
        name
        for name in unique(key[0] for of_classifier in means for key in of_classifier)
        if all((name, *place) in of_classifier for of_classifier in means for place in places)
    ]
    if not names:
        raise ValueError(
            "no calibrator was measured with the same metrics on the same test sets of every "
            "classifier: compare the same methods on the same names of test sets"
        )
    values = np.array(  # (classifiers, places, calibrators)
        [[[of[(name, *place)] for name in names] for place in places] for of in means]
    )
    ranks = np.stack(
        [
            rank_values(values[:, i], METRICS[metric].lower_is_better)
            for i, (_, metric) in enumerate(places)
        ],
        1,
    )
    at = {
        metric: [i for i, place in enumerate(places) if place[1] == metric]
        for metric in unique(place[1] for place in places)
    }
    of_methods = [
        MethodRank(
            name,
            mean_of_defined(ranks[:, :, k]),
            {metric: float(values[:, i, k].mean()) for metric, i in at.items()},
            {metric: compute_spread(values[:, i, k].mean(1)) for metric, i in at.items()},
            {metric: mean_of_defined(ranks[:, i, k]) for metric, i in at.items()},
        )
        for k, name in enumerate(names)
    ]
    return sorted(of_methods, key=lambda one: (math.isnan(one.mean_rank), one.mean_rank))
