"""Streams: the context of the last samples, and states that merge."""

import itertools
import json

import pytest
import torch

import rightly
from tests.conftest import make


@pytest.fixture(scope="module")
def calibrator():
    return rightly.calibrator("temperature_scaling").fit(*make(n=400))


@pytest.fixture(scope="module")
def unlabelled():
    predictions, _ = make(n=300, seed=5)
    return rightly.Predictions(0.85 * predictions.logits)


def test_a_stream_ends_at_the_context_of_its_last_samples(calibrator, unlabelled):
    stream = rightly.Stream(calibrator, window=100)
    for start in range(0, 300, 20):
        confidence = stream.observe(unlabelled[start : start + 20])
    last = unlabelled[200:]
    adapted = calibrator.adapt(last)
    assert stream.samples == 100
    assert stream.context.value == pytest.approx(float(adapted.context.value), abs=1e-8)
    torch.testing.assert_close(confidence, adapted.confidence(unlabelled[280:]))
    expected = calibrator.expected_accuracy(last)
    assert stream.expected_accuracy == pytest.approx(expected, abs=5e-4)


def test_memory_does_not_grow(calibrator, unlabelled):
    stream = rightly.Stream(calibrator, window=16)
    sizes = []
    for _ in range(3):
        for i in range(100):
            stream.observe(unlabelled[i : i + 1])
        sizes.append((stream.samples, len(stream.to_json()) // 1000))
    assert sizes[0] == sizes[1] == sizes[2] and sizes[0][0] == 16


def test_snapshots_of_workers_merge_in_any_order_to_the_same_state(calibrator, unlabelled):
    workers = [rightly.Stream(calibrator, window=60) for _ in range(3)]
    for i in range(30):  # in turns, each worker sees every third block
        workers[i % 3].observe(unlabelled[10 * i : 10 * i + 10], at=1000.5 + i)
    snapshots = [worker.to_json() for worker in workers]
    merged = set()
    for order in itertools.permutations(snapshots):
        stream = rightly.Stream(calibrator, window=60)
        for snapshot in order:
            stream.merge(snapshot)
        merged.add(stream.to_json())
    assert len(merged) == 1
    alone = rightly.Stream(calibrator, window=60)
    for i in range(30):
        alone.observe(unlabelled[10 * i : 10 * i + 10], at=1000.5 + i)
    assert rightly.Stream.from_json(calibrator, merged.pop()).context == alone.context


def test_a_block_merged_twice_is_refused_and_nothing_is_added(calibrator, unlabelled):
    worker, other = rightly.Stream(calibrator), rightly.Stream(calibrator)
    worker.observe(unlabelled[:10])
    other.merge(worker.to_json())
    worker.observe(unlabelled[10:30])
    with pytest.raises(ValueError, match="must be added once"):
        other.merge(worker.to_json())
    assert other.samples == 10


def test_a_stream_goes_on_after_a_restart(calibrator, unlabelled):
    stream = rightly.Stream(calibrator, window=50)
    stream.observe(unlabelled[:30])
    again = rightly.Stream.from_json(calibrator, stream.to_json())
    assert again.window == 50 and again.to_json() == stream.to_json()
    confidence = again.observe(unlabelled[30:60])
    torch.testing.assert_close(confidence, stream.observe(unlabelled[30:60]), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "tea"}, "context window"),
        ({"version": 7}, "version 7"),
        ({"source": "x"}, "one source"),
        ({"size": 0}, "size must be"),
        ({"blocks": [{"id": "a"}]}, "damaged"),
    ],
)
def test_snapshots_that_do_not_fit_are_refused(calibrator, unlabelled, change, message):
    stream = rightly.Stream(calibrator)
    stream.observe(unlabelled[:5])
    text = json.dumps(json.loads(stream.to_json()) | change)
    with pytest.raises(ValueError, match=message):
        rightly.Stream.from_json(calibrator, text)


def test_what_cannot_be_observed_is_refused_and_changes_nothing(calibrator, unlabelled):
    stream = rightly.Stream(calibrator)
    with pytest.raises(ValueError, match="must hold samples"):
        _ = stream.expected_accuracy
    with pytest.raises(ValueError, match="at must be a finite number"):
        stream.observe(unlabelled[:5], at=float("nan"))
    assert stream.samples == 0 and stream.context.value == 0
    with pytest.raises(ValueError, match="size must be"):
        rightly.Stream(calibrator, window=0)
