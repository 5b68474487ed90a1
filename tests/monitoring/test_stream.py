"""Streams: each batch at the shift estimate of those before it, and states that merge."""

import itertools
import json
import warnings

import numpy as np
import pytest
import torch

import rightly
from rightly.decisions.expected_accuracy import ShiftConstants
from rightly.monitoring.stream import ShiftStream
from tests.conftest import make

NOW = 1.8e9


class Clock:
    """A clock that somebody sets."""

    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def calibrator():
    return rightly.calibrator("temperature_scaling").fit(*make(n=400)).learn_shift(*make(n=400))


@pytest.fixture(scope="module")
def unlabelled():
    predictions, _ = make(n=300, seed=5)
    return rightly.Predictions(0.92 * predictions.logits)


def open_plain(clock, window=20, noise=0.0):
    """One whose shift estimate is the mean shift score."""
    return ShiftStream(ShiftConstants((1.0, 0.0, 0.0), (-9.0, 9.0), noise), window, "m", clock)


def feed(stream, shift_score, batches=1, at=None):
    """Batches of 10 samples with this shift score; the last answers."""
    for _ in range(batches):
        answers = stream.observe(np.zeros(10, int), np.full(10, 0.8), np.full(10, shift_score), at)
    return answers


def test_a_stream_answers_first_and_then_adds(calibrator, unlabelled):
    stream = rightly.Stream(calibrator, window=100)
    first = stream.observe(unlabelled[:20])
    torch.testing.assert_close(first, calibrator.confidence(unlabelled[:20]), rtol=0, atol=0)
    for start in range(20, 300, 20):
        earlier = unlabelled[max(start - 100, 0) : start]
        adapted = calibrator.adapt(earlier)
        assert stream.shift_estimate == pytest.approx(float(adapted.shift.estimate), abs=1e-7)
        rows = unlabelled[start : start + 20]
        torch.testing.assert_close(stream.observe(rows), adapted.confidence(rows))
    last = unlabelled[200:]
    assert stream.samples == 100
    expected = calibrator.expected_accuracy(last)
    assert stream.expected_accuracy == pytest.approx(expected, abs=5e-4)


def test_an_answer_does_not_depend_on_who_shares_its_batch(calibrator, unlabelled):
    streams = [rightly.Stream(calibrator, window=64) for _ in range(2)]
    for stream in streams:
        stream.observe(unlabelled[:64])
    alone = streams[0].observe(unlabelled[64:65])
    shared = streams[1].observe(unlabelled[64:164])
    assert float(alone[0]) == float(shared[0])


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
    for i in range(30):  # in turns, each worker sees every third batch
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
    restored = rightly.Stream.from_json(calibrator, merged.pop())
    assert restored.shift_estimate == alone.shift_estimate


def test_a_batch_that_is_merged_twice_counts_once(calibrator, unlabelled):
    worker, other = rightly.Stream(calibrator), rightly.Stream(calibrator)
    worker.observe(unlabelled[:10])
    other.merge(worker.to_json())
    worker.observe(unlabelled[10:30])
    other.merge(worker.to_json())
    assert other.samples == 30 and other.shift_estimate == worker.shift_estimate


def test_a_stream_goes_on_after_a_restart(calibrator, unlabelled):
    stream = rightly.Stream(calibrator, window=50)
    stream.observe(unlabelled[:30])
    again = rightly.Stream.from_json(calibrator, stream.to_json())
    assert again.window.size == 50 and again.to_json() == stream.to_json()
    confidence = again.observe(unlabelled[30:60])
    torch.testing.assert_close(confidence, stream.observe(unlabelled[30:60]), rtol=0, atol=0)


@pytest.mark.parametrize("back", [1.0, 600.0, 86400.0, NOW])
def test_a_clock_that_steps_back_does_not_freeze_adaptation(back):
    clock = Clock()
    stream = open_plain(clock)
    feed(stream, 0.0, batches=5)
    clock.now -= back
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feed(stream, -2.0, batches=2)
    assert stream.shift_estimate == pytest.approx(-2.0)
    assert len([one for one in caught if "ahead" in str(one.message)]) == (back > 3600)
    # Nor does a restart by the state that was left.
    again = open_plain(clock)
    again.merge(stream.to_json())
    feed(again, -1.0, batches=2)
    assert again.shift_estimate == pytest.approx(-1.0)


@pytest.mark.parametrize("ahead", [600.0, 86400.0 * 365])
def test_a_state_from_a_machine_ahead_of_time_does_not_freeze_adaptation(ahead):
    early, right = Clock(NOW + ahead), Clock()
    far = open_plain(early)
    feed(far, 0.0, batches=40)
    stream = open_plain(right)
    if ahead > 3600:
        with pytest.warns(UserWarning, match="more than an hour ahead of the present clock"):
            stream.merge(far.to_json())
    else:
        stream.merge(far.to_json())
    assert stream.samples == 20 and stream.shift_estimate == 0
    feed(stream, -2.0, batches=2)
    assert stream.shift_estimate == pytest.approx(-2.0)


def test_workers_of_which_one_is_ahead_of_time_go_on_adapting():
    clocks = [Clock(), Clock(NOW + 86400), Clock(NOW - 86400)]
    workers = [open_plain(clock, window=60) for clock in clocks]
    for i in range(30):
        for clock in clocks:
            clock.now += 1
        feed(workers[i % 3], 0.0 if i < 12 else -2.0)
        state = workers[i % 3].to_json()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for worker in workers:
                worker.merge(state)
    assert [worker.shift_estimate for worker in workers] == pytest.approx([-2.0] * 3)


def test_a_time_far_ahead_is_ignored_and_earlier_ones_count_as_the_newest():
    clock = Clock()
    stream = open_plain(clock)
    with pytest.warns(UserWarning, match="at must not lie more than an hour ahead"):
        feed(stream, 0.0, at=NOW + 7200)
    assert stream.window.batches[-1].at == NOW
    feed(stream, -1.0, at=NOW - 7200)
    feed(stream, -1.0, at=NOW - 7200)
    assert stream.shift_estimate == pytest.approx(-1.0)
    assert {batch.at for batch in stream.window.batches} == {NOW}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "tea"}, "JSON of a window"),
        ({"version": 7}, "version 7"),
        ({"source": "x"}, "one source"),
        ({"size": 0}, "window must be at least 1"),
        ({"batches": [{"worker": "a"}]}, "damaged"),
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
    assert np.isnan(stream.expected_accuracy).all()
    with pytest.raises(ValueError, match="at must be a finite number"):
        stream.observe(unlabelled[:5], at=float("nan"))
    assert stream.samples == 0 and stream.shift_estimate == 0
    with pytest.raises(ValueError, match="window must be"):
        rightly.Stream(calibrator, window=0)
