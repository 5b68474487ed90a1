"""Requests under load: timeouts, full queues, clients that hang up."""

import asyncio
import re
import socket
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from rightly.serving import Limits
from tests.serving.clients import (
    IMAGE,
    Gated,
    check_refusal,
    make_colour,
    make_form,
    open_client,
    post_body,
    run_server,
)
from tests.serving.fake_model import BrightestChannel, make_file, serving_process


def test_a_request_that_takes_too_long_is_refused_and_the_server_is_known_to_be_stuck():
    model, limits = Gated(), Limits(timeout_s=0.2)

    async def go():
        async with open_client(model, limits) as http:
            model.gate.clear()
            late = await http.post("/predict", files={"image": make_file()})
            async with asyncio.timeout(20):
                while (stuck := await http.get("/healthz")).status_code == 200:
                    await asyncio.sleep(0.01)
                model.gate.set()
                while (await http.get("/healthz")).status_code != 200:
                    await asyncio.sleep(0.01)
            return late, stuck

    late, stuck = asyncio.run(go())
    assert "0.2 seconds" in check_refusal(late, 408, "timeout")
    assert (stuck.status_code, stuck.json()["status"]) == (503, "stuck")


def test_a_body_that_never_ends_is_refused_in_time():
    async def slow():
        yield make_form((IMAGE, b""), end=False)
        await asyncio.sleep(60)

    check_refusal(post_body(slow(), limits=Limits(timeout_s=0.2)), 408, "timeout")


def test_a_full_queue_sends_clients_away_for_a_while():
    model, limits = Gated(), Limits(max_images=2, queue=2, max_batch=1, max_wait_ms=0.0)

    async def go():
        async with open_client(model, limits) as http:
            model.gate.clear()
            requests = [
                asyncio.create_task(http.post("/predict", files={"image": make_file()}))
                for _ in range(8)
            ]
            async with asyncio.timeout(20):
                while sum(each.done() for each in requests) < 5:
                    await asyncio.sleep(0.01)
            model.gate.set()
            answers = [await each for each in requests]
            return answers, await http.post("/predict", files={"image": make_file()})

    answers, after = asyncio.run(go())
    refused = [each for each in answers if each.status_code != 200]
    assert len(refused) in (5, 6)  # two wait, and one is run, unless its turn came too late
    for each in refused:
        check_refusal(each, 429, "busy")
        assert each.headers["retry-after"] == "1"
    assert after.status_code == 200


def test_a_client_that_hangs_up_is_not_waited_for():
    model, limits = Gated(), Limits(max_batch=1, max_wait_ms=0.0)
    body = make_form((IMAGE, make_file()))
    head = (
        "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with run_server(model, limits) as (host, port):

        def wait_for(line):
            until = time.monotonic() + 20
            while line not in httpx.get(f"http://{host}:{port}/metrics").text.splitlines():
                assert time.monotonic() < until, f"never came: {line}"
                time.sleep(0.01)

        model.batches.clear()
        model.gate.clear()
        lines = [socket.create_connection((host, port)) for _ in range(6)]
        for line in lines:
            line.sendall(head.encode() + body)
        wait_for("rightly_queue_images 5.0")  # the first is being run
        for line in lines:
            line.close()
        wait_for('rightly_requests_total{route="/predict",status="499"} 6.0')
        model.gate.set()
        answer = httpx.post(f"http://{host}:{port}/predict", files={"image": make_file()})
    assert answer.status_code == 200
    assert len(model.batches) == 2  # the first, and the one whose client waited


def test_a_thousand_requests_are_answered_each_for_its_own_image_in_flat_memory(capsys):
    """Load from a second process, this one, 32 requests at once."""
    at_once, margin_mb = 32, 16

    pictures = [make_file(make_colour(i), size=(320, 240)) for i in range(1000)]

    async def load(url, count, seconds):
        turns = asyncio.Semaphore(at_once)
        async with httpx.AsyncClient(timeout=60) as http:

            async def one(i):
                files = {"image": (f"{i}", pictures[i])}
                async with turns:
                    started = time.perf_counter()
                    answer = await http.post(f"{url}/predict", files=files)
                    seconds.append(time.perf_counter() - started)
                return answer

            return await asyncio.gather(*[one(i) for i in range(count)])

    with serving_process() as (url, pid):
        asyncio.run(load(url, 300, []))  # until what is allocated once has been
        before, seconds = read_resident_mb(pid), []
        answers = asyncio.run(load(url, 1000, seconds))
        after = read_resident_mb(pid)
    alone = BrightestChannel().predict(
        np.stack([np.full((8, 8, 3), make_colour(i), np.uint8) for i in range(1000)])
    )
    for i, answer in enumerate(answers):
        assert answer.status_code == 200
        (prediction,) = answer.json()["predictions"]
        assert prediction["file"] == f"{i}" and prediction["class"] == alone.classes[i]
        assert prediction["confidence"] == pytest.approx(alone.confidence[i], abs=1e-12)
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    with capsys.disabled():
        sys.stdout.write(
            f"\nserving: 1,000 of 1,000 answered, {at_once} at once, p50 {1000 * p50:.0f} ms, "
            f"p99 {1000 * p99:.0f} ms, memory {before:.1f} MB before, {after:.1f} MB after\n"
        )
    assert after - before < margin_mb


def read_resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024
