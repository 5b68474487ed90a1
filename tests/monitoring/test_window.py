"""Windows: the newest batches, whoever observed them."""

import itertools
import json
import random

import numpy as np
import pytest

from rightly.monitoring.window import BINS, Window, WindowBatch


def draw(i, samples):
    rng = np.random.default_rng(i)
    return rng.integers(0, 4, samples), rng.normal(1, 2, samples), rng.normal(size=samples)


def make_batch(i, samples=7, worker="a", at=None):
    return WindowBatch.of(worker, i, i if at is None else at, *draw(i, samples))


def test_a_window_holds_the_newest_batches_and_their_means():
    window = Window(20).add(*(make_batch(i) for i in range(9)))
    assert [batch.at for batch in window.batches] == [6, 7, 8] and window.samples == 21
    drawn = [draw(i, 7) for i in (6, 7, 8)]
    values = np.concatenate([each[2] for each in drawn])
    assert window.mean_shift_score == pytest.approx(values.mean(), abs=1e-6)
    assert window.counts == {
        k: int((np.concatenate([d[0] for d in drawn]) == k).sum()) for k in range(4)
    }
    middles, counts = window.scores()
    scores = np.sort(np.concatenate([each[1] for each in drawn]))
    np.testing.assert_allclose(np.repeat(middles, counts), scores, atol=0.51 / BINS)
    assert np.isnan(Window().mean_shift_score) and not len(Window().scores()[0])


def test_windows_of_workers_merge_in_any_order_to_the_same_snapshot():
    batches = [make_batch(i, 1 + i % 5, f"worker{i % 3}", at=i // 4) for i in range(60)]
    workers = [Window(50, "m").add(*batches[k::3]) for k in range(3)]
    expected = Window(50, "m").add(*batches).to_json()
    for seed in range(6):
        order = workers[:]
        random.Random(seed).shuffle(order)
        first, *others = (Window.from_json(window.to_json()) for window in order)
        for other in others:
            first = first.merge(other).merge(other)  # what is there already counts once
        assert first.to_json() == expected


def test_a_batch_that_arrives_is_never_older_than_those_there():
    window = Window(30)
    for at in (100.0, 50.0, 101.0, 7.0, 7.0):
        place = window.place(at)
        window = window.add(WindowBatch.of("b", place[1], place[0], *draw(0, 10)))
    assert [batch.at for batch in window.batches] == [101.0, 101.0, 101.0]
    assert [batch.number for batch in window.batches] == [2, 3, 4]


def test_times_ahead_of_the_clock_are_ignored():
    ahead = Window(30, "m").add(*(make_batch(i, 10, "ahead", 1e6 + i) for i in range(3)))
    with pytest.warns(UserWarning, match="more than an hour ahead of the present clock"):
        read = ahead.ignore_times_ahead(5000.0)
    assert [(batch.at, batch.number) for batch in read.batches] == [(0.0, i) for i in range(3)]
    assert read.ignore_times_ahead(5000.0) is read and ahead.ignore_times_ahead(1e6) is ahead
    ours = Window(30, "m").add(make_batch(1, 10, "ours", 4990.0))
    texts = {
        order[0].merge(order[1]).merge(order[2]).to_json()
        for order in itertools.permutations((read, read, ours))
    }
    assert len(texts) == 1
    merged = ours.merge(read)
    assert [batch.worker for batch in merged.batches] == ["ahead", "ahead", "ours"]
    # One that comes now is the newest, and those whose time was ignored go first.
    at, number = merged.place(5001.0)
    newest = merged.add(*(WindowBatch.of("ours", number + k, at, *draw(9, 10)) for k in range(2)))
    assert [batch.worker for batch in newest.merge(read).batches] == ["ours"] * 3


def test_the_time_that_only_some_readers_ignored_counts():
    early, late = make_batch(1, at=0.0), make_batch(1, at=7.0)
    for first, second in ((early, late), (late, early)):
        assert Window().add(first).merge(Window().add(second)).batches[0].at == 7.0


def test_what_does_not_belong_is_refused():
    window = Window(50, "m").add(make_batch(1), make_batch(2))
    with pytest.raises(ValueError, match="batch 1 of worker 'a' must hold the same"):
        window.add(make_batch(1, samples=8))
    with pytest.raises(ValueError, match="one source to be merged, got 'm' and 'other'"):
        window.merge(Window(50, "other"))
    with pytest.raises(ValueError, match="shift_score must have 2 values"):
        WindowBatch.of("a", 1, 1, [0, 1], [0.5, 0.5], [0.5])
    with pytest.raises(ValueError, match="shift_score must hold numbers"):
        WindowBatch.of("a", 1, 1, [0, 1], [0.5, 0.5], [0.5, np.nan])
    with pytest.raises(ValueError, match="must hold 1 to"):
        WindowBatch.of("a", 1, 1, [], [], [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda snapshot: snapshot.update(format="tea"),
        lambda snapshot: snapshot.update(version=9),
        lambda snapshot: snapshot.update(size=0),
        lambda snapshot: snapshot.pop("batches"),
        lambda snapshot: snapshot["batches"][0].pop("at"),
        lambda snapshot: snapshot["batches"][0].update(at="now"),
        lambda snapshot: snapshot["batches"][0].update(number=-1),
        lambda snapshot: snapshot["batches"][0].update(counts={"x": 1}),
        lambda snapshot: snapshot["batches"][0].update(counts={"1": -1}),
        lambda snapshot: snapshot["batches"][0].update(bins={}),
        lambda snapshot: snapshot["batches"][0].update(shift_score=0.5),
    ],
)
def test_a_damaged_snapshot_is_refused(damage):
    snapshot = json.loads(Window().add(make_batch(1)).to_json())
    damage(snapshot)
    with pytest.raises(ValueError):
        Window.from_json(json.dumps(snapshot))


@pytest.mark.parametrize("samples", [1, 3, 30, 1000])
def test_parts_are_means_of_enough_samples_to_tell_more_than_chance(samples):
    batches = (WindowBatch.of("a", i, i, [0], [0.0], [i % 2]) for i in range(samples))
    parts = Window(samples).add(*batches).divide(32, 8)
    sizes = [part.samples for part in parts]
    assert sum(sizes) == samples and len(parts) <= 32
    assert min(sizes) >= min(8, max(1, samples // 3))
    if samples >= 30:
        assert all(part.mean_shift_score == pytest.approx(0.5, abs=0.1) for part in parts)
