"""Which methods differ, over classifiers, in each metric."""

import math
from typing import NamedTuple

import numpy as np

from rightly.evaluation.over_classifiers.significance import (
    compute_critical_difference,
    compute_friedman,
    compute_signed_rank_posterior,
    compute_wilcoxon_p,
)
from rightly.evaluation.over_classifiers.value_grid import ValueGrid
from rightly.evaluation.results import rank_values
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import holm


class MethodTest(NamedTuple):
    """A method beside the reference in one metric, by its mean over test sets in each classifier.

    `p` is Wilcoxon's, `p_holm` corrected for the number of methods. `better`, `same` and `worse`
    are posterior probabilities of the Bayesian signed-rank test.
    """

    calibrator: str
    metric: str
    rank: float
    difference: float  # mean over classifiers, the method's less the reference's
    p: float = math.nan
    p_holm: float = math.nan
    better: float = math.nan
    same: float = math.nan
    worse: float = math.nan


class MetricTest(NamedTuple):
    """Whether methods differ in a metric at all (Friedman), and from what difference of ranks on
    two of them do (Nemenyi); `classifiers` in which every method has a value."""

    metric: str
    classifiers: int
    statistic: float
    p: float
    critical_difference: float


def compare_over_classifiers(
    grid: ValueGrid, reference: str, rope: float, seed: int = 0
) -> tuple[list[MethodTest], list[MetricTest]]:
    """All tests of the metrics that have a best, on the mean of test sets."""
    of_methods: list[MethodTest] = []
    of_metrics: list[MetricTest] = []
    base = grid.methods.index(reference)
    for k, metric in enumerate(grid.metrics):
        lower = METRICS[metric].lower_is_better
        values = grid.values[:, :, -1, k]
        values = values[~np.isnan(values).any(1)]
        if lower is None or len(values) < 2:
            continue
        ranks = rank_values(values, lower)
        friedman = compute_friedman(ranks, seed)
        distance = compute_critical_difference(len(grid.methods), len(values))
        of_metrics.append(MetricTest(metric, len(values), *friedman, distance))
        tests: list[MethodTest] = []
        for m, method in enumerate(grid.methods):
            differences = values[:, m] - values[:, base]
            test = MethodTest(method, metric, float(ranks[:, m].mean()), float(differences.mean()))
            if m != base:
                posterior = compute_signed_rank_posterior(differences, rope, lower, seed)
                test = test._replace(p=compute_wilcoxon_p(differences), **posterior._asdict())
            tests.append(test)
        corrected = holm({test.calibrator: test.p for test in tests})
        of_methods += [test._replace(p_holm=corrected[test.calibrator]) for test in tests]
    return of_methods, of_metrics
