"""Methods over classifiers: means of what all have, ranks, and tests (Demsar, 2006).

Each classifier is one observation. Test sets of one classifier are not independent of each other,
so they are averaged before, never counted as observations of their own. A mean over other
classifiers is another mean: methods and test sets that some classifier lacks take no part, and are
named.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rightly.evaluation.results import Result, ResultTable, average_seeds, count, unique
from rightly.metrics import METRICS
from rightly.metrics.bootstrap import holm
from rightly.resampling import Interval, interval

if TYPE_CHECKING:
    from rightly.reporting.layout import Layout

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

    for name, *key in product(classifiers, methods, datasets, metrics):
        if tuple(key) not in means[name]:
            method, dataset, metric = key
            raise ValueError(
                f"directory must hold every metric of every method and test set, but {name} has no "
                f"{metric} of {method} on {dataset}: write its results anew with `compare`"
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


def rank_values(values: np.ndarray, lower_is_better: bool | None) -> np.ndarray:
    """Ranks along the last axis from 1, the best, on; ties share theirs, nan without an order."""
    from scipy.stats import rankdata

    if lower_is_better is None:
        return np.full(values.shape, np.nan)
    return rankdata(values if lower_is_better else -values, axis=-1, nan_policy="propagate")


def mean_of_defined(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def compute_spread(values: np.ndarray) -> float:
    """Standard deviation; nan of one value."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


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


FIGURE = "critical-difference"


@dataclass(frozen=True, eq=False, repr=False)
class MethodTests(ResultTable[MethodTest]):
    """Every method beside a reference over classifiers, in each metric that has a best."""

    kind = "tests"

    tests: Sequence[MethodTest]
    metrics: Sequence[MetricTest]
    reference: str
    rope: float

    @property
    def rows(self) -> Sequence[MethodTest]:
        return self.tests

    def to_records(self) -> list[dict[str, Any]]:
        return [row._asdict() for row in self.tests]

    def lay_out(self) -> "Layout":
        from rightly.reporting.layout import lay_out_tests

        return lay_out_tests(self.tests, self.metrics, self.reference, self.rope)

    def describe(self) -> dict[str, Any]:
        metrics = [test._asdict() for test in self.metrics]
        return {"reference": self.reference, "rope": self.rope, "metrics": metrics}

    def plot(self, kind: str = FIGURE, metric: str | None = None, **options: Any) -> Any:
        """Draws mean ranks in a metric with their critical difference, and returns the axes."""
        from rightly.reporting.figures.classifier_grids import draw_critical_difference

        tested = {test.metric: test for test in self.metrics}
        chosen = next(iter(tested)) if metric is None else metric
        if kind != FIGURE or chosen not in tested:
            raise ValueError(
                f"kind must be {FIGURE!r} and metric one of {', '.join(tested)}, got {kind!r} "
                f"and {chosen!r}"
            )
        ranks = {row.calibrator: row.rank for row in self.tests if row.metric == chosen}
        title = f"{chosen}, {count(tested[chosen].classifiers, 'classifier')}"
        options = {"title": title, **options}
        return draw_critical_difference(ranks, tested[chosen].critical_difference, **options)

    def __repr__(self) -> str:
        size = f"{count(self.metrics, 'metric')}, against {self.reference}"
        return f"<MethodTests: {size}>"


Table = Float[np.ndarray, "classifiers methods"]
Differences = Float[np.ndarray, " classifiers"]

PERMUTATIONS = 9_999
EXACT = 16  # classifiers up to which all signs are tried, 2**16 of them
PRIOR = 0.5  # weight of the prior's one observation, a difference of 0 (Benavoli et al., 2017)
DRAWS = 20_000


class Friedman(NamedTuple):
    """Whether the methods differ at all."""

    statistic: float  # chi squared, corrected for ties
    p: float


class SignedRank(NamedTuple):
    """Posterior probabilities that a method is better, practically the same, or worse."""

    better: float
    same: float
    worse: float


def compute_friedman(ranks: Table, seed: int = 0) -> Friedman:
    """Friedman's statistic (1937), with its p value from permutations within classifiers.

    The usual chi squared and F are for many classifiers: of two that agree, F says p = 0.
    """
    rng = np.random.default_rng(seed)
    k = ranks.shape[1]
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())  # the same in any order
    if not spread:
        return Friedman(0.0, 1.0)
    observed = _spread_of_sums(ranks)
    drawn = [_spread_of_sums(rng.permuted(ranks, axis=1)) for _ in range(PERMUTATIONS)]
    beyond = sum(one >= observed * (1 - 1e-12) for one in drawn)
    return Friedman((k - 1) * observed / spread, (1 + beyond) / (1 + PERMUTATIONS))


def _spread_of_sums(ranks: Table) -> float:
    sums = ranks.sum(0)
    return float(((sums - sums.mean()) ** 2).sum())


def compute_critical_difference(methods: int, classifiers: int, level: float = 0.05) -> float:
    """How far mean ranks must lie apart to differ, whichever two they are (Nemenyi, 1963)."""
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(methods * (methods + 1) / (6 * classifiers)))


def compute_wilcoxon_p(differences: Differences) -> float:
    """Two-sided p value of Wilcoxon's signed-rank test (1945), zeros ranked as by Pratt (1959).

    Exact, also with ties, up to 16 classifiers; from there on the normal approximation.
    """
    from scipy.stats import norm, rankdata

    ranks = rankdata(abs(differences)) * (differences != 0)
    if not ranks.any():
        return 1.0
    observed, n = abs((ranks * np.sign(differences)).sum()), len(ranks)
    if n > EXACT:
        return float(min(1.0, 2 * norm.sf(observed / math.sqrt((ranks**2).sum()))))
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return float((abs(signs @ ranks) >= observed - 1e-9).mean())


def min_classifiers(tests: int, level: float = 0.05) -> int:
    """How many classifiers the signed-rank test needs to pass Holm's correction of that many."""
    return math.ceil(math.log2(2 * max(tests, 1) / level))


def compute_signed_rank_posterior(
    differences: Differences, rope: float, lower_is_better: bool, seed: int = 0
) -> SignedRank:
    """The Bayesian signed-rank test (Benavoli et al., 2014): a Dirichlet process over differences.

    `differences` are the method's values less the reference's; those within `rope` are none.
    """
    rng = np.random.default_rng(seed)
    gains = -differences if lower_is_better else differences
    with_prior = np.append(0.0, gains)
    sums = with_prior[:, None] + with_prior
    better = (sums > 2 * rope) + 0.5 * (sums == 2 * rope)
    worse = (sums < -2 * rope) + 0.5 * (sums == -2 * rope)
    weights = rng.dirichlet(np.append(PRIOR, np.ones(len(gains))), DRAWS)
    shares = np.stack(
        [((weights @ which) * weights).sum(1) for which in (better, 1 - better - worse, worse)], 1
    )
    # What ties is shared, so that equal methods are as likely better as worse.
    is_largest = shares >= shares.max(1, keepdims=True) - 1e-12
    probabilities = (is_largest / is_largest.sum(1, keepdims=True)).mean(0)
    return SignedRank(*map(float, probabilities))
