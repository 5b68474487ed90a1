"""Images that wait together are run together."""

import asyncio
import threading
import time

import numpy as np
import pytest

from rightly.serving import Limits
from rightly.serving.batching import Batcher
from rightly.serving.limits import RefusedRequest
from tests.serving.clients import make_colour, make_pixels, open_client
from tests.serving.fake_model import BrightestChannel, make_file


def test_requests_at_once_share_batches_and_each_gets_its_own_answer():
    model, limits = BrightestChannel(), Limits(max_batch=8, max_wait_ms=200.0)

    async def go():
        async with open_client(model, limits) as http:
            model.batches.clear()
            requests = [
                http.post("/predict", files={"image": make_file(make_colour(i))}) for i in range(40)
            ]
            return await asyncio.gather(*requests)

    answers = asyncio.run(go())
    assert max(model.batches) <= 8 and len(model.batches) < 20 and sum(model.batches) == 40
    for i, each in enumerate(answers):
        pixels = np.full((1, 8, 8, 3), make_colour(i), np.uint8)
        alone = BrightestChannel().predict(pixels).confidence[0]
        assert each.json()["predictions"][0]["confidence"] == pytest.approx(alone, abs=1e-12)


@pytest.fixture
def batcher():
    batchers = []

    def make(predict, **limits):
        batchers.append(Batcher(predict, Limits(**limits)))
        batchers[-1].start()
        return batchers[-1]

    yield make
    for each in batchers:
        each.stop()


def test_what_was_given_up_is_not_run(batcher):
    model, gate = BrightestChannel(), threading.Event()

    def predict(images):
        assert gate.wait(10)
        return model.predict(images)

    work = batcher(predict, max_batch=1, max_wait_ms=0.0)
    (first,) = work.submit([make_pixels()])
    while work.waiting:
        time.sleep(0.001)  # until the first is being run
    given_up, kept = work.submit([make_pixels(), make_pixels((0, 200, 0))])
    assert given_up.cancel()
    gate.set()
    assert first.result(10).classes[0] == 0 and kept.result(10).classes[0] == 1
    assert model.batches == [1, 1]


def test_what_was_given_up_makes_room_in_a_full_queue(batcher):
    gate, model = threading.Event(), BrightestChannel()

    def predict(images):
        assert gate.wait(10)
        return model.predict(images)

    work = batcher(predict, max_batch=1, max_wait_ms=0.0, queue=4, max_images=4)
    work.submit([make_pixels()])
    while work.waiting:
        time.sleep(0.001)
    waiting = work.submit(4 * [make_pixels()])
    with pytest.raises(RefusedRequest, match="busy"):
        work.submit([make_pixels()])
    for each in waiting:
        each.cancel()
    (last,) = work.submit([make_pixels()])
    gate.set()
    last.result(10)


def test_images_of_several_sizes_are_run_apart(batcher):
    model = BrightestChannel(size=None)
    work = batcher(model.predict, max_wait_ms=50.0)
    sizes = [(8, 8), (4, 8), (8, 8), (4, 8)]
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (200, 0, 0)]
    waiting = work.submit([make_pixels(*each) for each in zip(colours, sizes, strict=True)])
    rows = [each.result(10) for each in waiting]
    assert [row.classes[0] for row in rows] == [0, 1, 2, 0]
    assert model.batches == [2, 2]


def test_an_image_that_fails_does_not_fail_the_others_of_its_batch(batcher):
    model = BrightestChannel()

    def predict(images):
        if (images == 66).all((1, 2, 3)).any():
            raise RuntimeError("cannot stand 66")
        return model.predict(images)

    work = batcher(predict, max_wait_ms=50.0)
    good, bad, other = work.submit(
        [make_pixels(), make_pixels((66, 66, 66)), make_pixels((0, 200, 0))]
    )
    assert good.result(10).classes[0] == 0 and other.result(10).classes[0] == 1
    with pytest.raises(RuntimeError, match="66"):
        bad.result(10)
    assert work.is_healthy


def test_a_stopped_batcher_runs_what_waits_and_takes_nothing_more(batcher):
    work = batcher(BrightestChannel(delay_s=0.02).predict, max_batch=1)
    waiting = work.submit(5 * [make_pixels()])
    work.stop()
    assert all(each.done() for each in waiting) and not work.is_healthy
    with pytest.raises(RefusedRequest, match="stopping"):
        work.submit([make_pixels()])
