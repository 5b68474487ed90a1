"""Mean ranks over classifiers."""

import math

import numpy as np
import pytest
from benchmarks.ranks import mean_ranks

from rightly.evaluation.results import Result


def row_of(name, value, dataset="a", metric="ece", seed=0):
    return Result(name, dataset, metric, value, seed)


def test_ranks_over_classifiers_are_the_worked_example():
    first = [row_of("x", 0.1), row_of("y", 0.2), row_of("z", 0.2)]
    first += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.95), ("z", 0.8))]
    second = [row_of("x", 0.3), row_of("y", 0.1), row_of("z", 0.2), row_of("w", 0.0)]
    second += [row_of(n, v, metric="auroc") for n, v in (("x", 0.9), ("y", 0.9), ("z", 0.9))]
    ranks = {one.calibrator: one for one in mean_ranks({"one": first, "two": second})}
    assert set(ranks) == {"x", "y", "z"}
    assert ranks["x"].mean_rank == pytest.approx((1 + 2 + 3 + 2) / 4)
    assert ranks["y"].mean_rank == pytest.approx((2.5 + 1 + 1 + 2) / 4)
    assert ranks["z"].rank == pytest.approx({"ece": (2.5 + 2) / 2, "auroc": (3 + 2) / 2})
    assert ranks["x"].mean == pytest.approx({"ece": 0.2, "auroc": 0.9})
    assert ranks["x"].spread["ece"] == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert next(iter(ranks)) == "y"


def test_seeds_are_averaged_and_one_classifier_has_no_spread():
    rows = [
        row_of("x", 0.1),
        row_of("x", 0.3, seed=1),
        row_of("y", 0.25),
        row_of("y", 0.25, seed=1),
    ]
    best, other = mean_ranks({"one": rows})
    assert (best.calibrator, other.calibrator) == ("x", "y")
    assert best.mean["ece"] == pytest.approx(0.2) and math.isnan(best.spread["ece"])


def test_a_value_that_does_not_exist_is_not_ranked():
    rows = [row_of("x", math.nan), row_of("y", 0.1), row_of("x", 0.2, "b"), row_of("y", 0.3, "b")]
    ranks = {one.calibrator: one for one in mean_ranks({"one": rows})}
    assert (ranks["x"].mean_rank, ranks["y"].mean_rank) == (1, 2)


def test_classifiers_with_nothing_in_common_are_refused():
    with pytest.raises(ValueError, match="no calibrator was measured"):
        mean_ranks({"one": [row_of("x", 0.1)], "two": [row_of("y", 0.1)]})
    with pytest.raises(ValueError, match="at least one classifier"):
        mean_ranks({})
