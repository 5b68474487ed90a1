"""Batches added up, against the metric of all samples at once, for every metric."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rightly.metrics import METRICS, Metric
from tests.metrics.test_definitions import inputs, measure

NEED_ALL = {  # ranks need every sample
    *("ace", "ks", "auroc", "aurc", "e_aurc", "augrc", "risk_at_coverage", "coverage_at_risk")
}


@pytest.mark.parametrize("name", METRICS)
@given(cuts=st.lists(st.integers(0, 60), max_size=6), order=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_any_split_merged_in_any_order_gives_the_metric_of_all_samples(name, cuts, order):
    first, second = inputs(name)
    ends = [0, *sorted(cuts), 60]
    workers = []
    for start, end in zip(ends, ends[1:], strict=False):
        worker = METRICS[name].accumulator()
        worker.update(first[start:end], second[start:end])  # some are empty
        workers.append(pickle.loads(pickle.dumps(worker)))  # as if from another process
    order.shuffle(workers)
    total = METRICS[name].accumulator()
    for worker in workers:
        total.merge(worker)
    assert total.sample_count == 60
    assert total.compute() == pytest.approx(measure(name, first, second), abs=1e-12)
    assert total.compute() == pytest.approx(measure(name, first, second), abs=1e-12)
    total.reset()
    total.update(torch.from_numpy(first[:9]), second[:9].tolist())
    assert total.compute() == pytest.approx(measure(name, first[:9], second[:9]), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_memory_is_constant_where_it_says_so(name):
    accumulator = METRICS[name].accumulator()
    assert accumulator.is_constant_memory == (name not in NEED_ALL)
    sizes = []
    for seed in range(3):
        accumulator.update(*inputs(name, seed=seed))
        accumulator.compute()
        sizes.append(len(pickle.dumps(accumulator)))
    grown = sizes[2] - sizes[0]
    assert (grown < 20) == accumulator.is_constant_memory, grown


def test_options_are_those_of_the_metric():
    first, second = inputs("ece")
    accumulator = METRICS["ece"].accumulator(bins=7)
    accumulator.update(first, second)
    assert accumulator.compute() == pytest.approx(measure("ece", first, second, bins=7))
    with pytest.raises(ValueError, match=r"other must accumulate ece .*'bins': 7.* got ece with"):
        accumulator.merge(METRICS["ece"].accumulator())
    with pytest.raises(TypeError, match="bins is no option of brier, which takes no options"):
        METRICS["brier"].accumulator(bins=7)
    with pytest.raises(ValueError, match="bins must be at least 1"):
        METRICS["ece"].accumulator(bins=0)


@pytest.mark.parametrize("name", METRICS)
def test_bad_batches_are_refused_and_leave_the_sums_alone(name):
    first, second = inputs(name)
    accumulator = METRICS[name].accumulator()
    with pytest.raises(ValueError, match=f"{name} needs samples to compute: call update first"):
        accumulator.compute()
    accumulator.update(first, second)
    with pytest.raises(TypeError, match="swapped"):
        accumulator.update(second, first)
    if METRICS[name].inputs == "probabilities":
        with pytest.raises(ValueError, match="must have 4 columns like those before, got 3"):
            accumulator.update(np.eye(3), [0, 1, 2])
    assert accumulator.compute() == pytest.approx(measure(name, first, second), abs=1e-12)
    first[:] = 0  # a buffer that is filled again must not change what was added
    assert accumulator.compute() == pytest.approx(measure(name, *inputs(name)), abs=1e-12)


def test_a_metric_of_ones_own_keeps_its_samples():
    spread = Metric("spread", lambda confidence, correct: float(np.ptp(confidence)))
    accumulator = spread.accumulator()
    accumulator.update([0.5, 0.75], [True, True])
    accumulator.update([0.25], [False])
    assert accumulator.compute() == 0.5
    assert "memory that grows" in repr(accumulator)
