import json
import random

import numpy as np
import pytest
import torch

from rightly.calibrators.adaptation.context import Context
from rightly.decisions.context_window import Block, ContextWindow, shrink_context


def draw(i, samples):
    rng = np.random.default_rng(i)
    return rng.integers(0, 4, samples), rng.normal(size=samples), rng.uniform(size=samples)


def make_block(i, samples=7, worker="a"):
    classes, residuals, confidence = draw(i, samples)
    return Block.of(f"{worker}-{i}", i, classes, shift_score=residuals, confidence=confidence)


def test_a_window_holds_the_newest_blocks_and_their_means():
    window = ContextWindow(20).add(*(make_block(i) for i in range(9)))
    assert [block.at for block in window.blocks] == [6, 7, 8] and window.samples == 21
    values = np.concatenate([draw(i, 7)[1] for i in (6, 7, 8)])
    assert window.mean("shift_score") == pytest.approx(values.mean(), abs=1e-6)
    assert sum(window.counts.values()) == 21
    assert np.isnan(ContextWindow().mean("shift_score"))


def test_windows_of_workers_merge_in_any_order_to_the_same_snapshot():
    blocks = [make_block(i, 1 + i % 5, f"worker{i % 3}") for i in range(60)]
    workers = [ContextWindow(50, "m").add(*blocks[k::3]) for k in range(3)]
    expected = ContextWindow(50, "m").add(*blocks).to_json()
    for seed in range(6):
        order = workers[:]
        random.Random(seed).shuffle(order)
        texts = [window.to_json() for window in order]
        first, *others = map(ContextWindow.from_json, texts)
        for other in others:
            first = first.merge(other)
        assert first.to_json() == expected


def test_what_does_not_belong_is_refused():
    window = ContextWindow(50, "m").add(make_block(1), make_block(2))
    with pytest.raises(ValueError, match="must be added once, but 'a-1'"):
        window.add(make_block(1))
    with pytest.raises(ValueError, match="added once, but 'a-1' came again, and 1 others"):
        window.merge(ContextWindow.from_json(window.to_json()))
    with pytest.raises(ValueError, match="one source to be merged, got 'm' and 'other'"):
        window.merge(ContextWindow(50, "other"))
    with pytest.raises(ValueError, match="confidence must have one value for each of 2"):
        Block.of("a", 1, [0, 1], confidence=[0.5])
    with pytest.raises(ValueError, match="shift_score must hold numbers"):
        Block.of("a", 1, [0, 1], shift_score=[0.5, np.nan])
    with pytest.raises(ValueError, match="must hold 1 to"):
        Block.of("a", 1, [], shift_score=[])


@pytest.mark.parametrize(
    "damage",
    [
        lambda snapshot: snapshot.update(format="tea"),
        lambda snapshot: snapshot.update(version=9),
        lambda snapshot: snapshot.update(size=0),
        lambda snapshot: snapshot.pop("blocks"),
        lambda snapshot: snapshot["blocks"][0].pop("at"),
        lambda snapshot: snapshot["blocks"][0].update(at="now"),
        lambda snapshot: snapshot["blocks"][0].update(counts={"x": 1}),
        lambda snapshot: snapshot["blocks"][0].update(counts={"1": -1}),
        lambda snapshot: snapshot["blocks"][0].update(sums={"confidence": 0.5}),
    ],
)
def test_a_damaged_snapshot_is_refused(damage):
    snapshot = json.loads(ContextWindow().add(make_block(1)).to_json())
    damage(snapshot)
    with pytest.raises(ValueError):
        ContextWindow.from_json(json.dumps(snapshot))


def test_shrinking_here_is_that_of_calibrators():
    context = Context.of(
        reference=torch.zeros(3),
        weights=torch.tensor([0.5, 0.1]),
        limits=torch.tensor([-2.5, 0.25]),
        noise=torch.tensor(30.0),
        misses=torch.zeros(2),
    )
    constants = {"limits": context.limits.tolist(), "noise": float(context.noise)}
    for mean, samples in ((-9.0, 4), (-1.0, 512), (0.1, 1), (3.0, 64)):
        assert shrink_context(mean, samples, constants) == context.shrink(mean, samples).value
    assert shrink_context(float("nan"), 0, constants) == 0
