"""Load on `rightly serve`, from a second process: throughput, latency and memory of the server.

    python -m benchmarks.speed.serve model.onnx --requests 1000 --at-once 32
    python -m benchmarks.speed.serve model.onnx --images photos/ --images-per-request 4

Pictures are noise without --images. Arguments after -- go to `rightly serve`.
"""

import argparse
import asyncio
import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

import httpx
import numpy as np
from PIL import Image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="what export wrote (.onnx)")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--images-per-request", type=int, default=1)
    parser.add_argument("--images", type=Path, help="a folder of pictures to send")
    parser.add_argument("--size", type=int, default=512, help="of the noise, in pixels")
    options, server_options = parser.parse_known_args()
    pictures = read_pictures(options.images) if options.images else draw_noise(options.size)
    bodies = list(islice(cycle(pictures), options.requests * options.images_per_request))
    k = options.images_per_request
    requests = [bodies[i : i + k] for i in range(0, len(bodies), k)]
    with run_server(options.file, [each for each in server_options if each != "--"]) as (url, pid):
        asyncio.run(send_requests(url, requests[: len(requests) // 4], options.at_once))  # warm-up
        before, started = read_resident_mb(pid), time.perf_counter()
        answered = asyncio.run(send_requests(url, requests, options.at_once))
        wall, after = time.perf_counter() - started, read_resident_mb(pid)
        batch = read_mean_batch(httpx.get(f"{url}/metrics").text)
    print_load(answered, wall, before, after, batch, k)


def print_load(
    answered: list[tuple[int, float]],
    wall: float,
    before: float,
    after: float,
    batch: float,
    per_request: int,
) -> None:
    seconds = np.array([took for _, took in answered])
    good = sum(status == 200 for status, _ in answered)
    p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
    print(f"answered          {good} of {len(answered)} with status 200")
    print(
        f"throughput        {good / wall:.1f} requests/s, {good * per_request / wall:.1f} images/s"
    )
    print(
        f"latency           p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {1000 * seconds.max():.1f} ms"
    )
    print(f"mean batch        {batch:.1f} images")
    print(f"server memory     {before:.1f} MB after warm-up, {after:.1f} MB at the end")
    if good < len(answered):
        sys.exit(1)


async def send_requests(
    url: str, requests: list[list[bytes]], at_once: int
) -> list[tuple[int, float]]:
    """Status and seconds of each request."""
    turns = asyncio.Semaphore(at_once)
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:

        async def one(pictures: list[bytes]) -> tuple[int, float]:
            files = [("images", (f"{i}.jpg", data)) for i, data in enumerate(pictures)]
            async with turns:
                started = time.perf_counter()
                response = await client.post(f"{url}/predict", files=files)
                return response.status_code, time.perf_counter() - started

        return await asyncio.gather(*[one(each) for each in requests])


@contextmanager
def run_server(file: str, options: list[str]) -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "rightly", "serve", file, "--port", "0", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        print(process.stdout.readline().strip())
        address = re.search(r"http://\S+", process.stdout.readline())
        if address is None:
            sys.exit("the server did not start")
        yield address.group(), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=60)


def read_resident_mb(pid: int) -> float:
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match.group(1)) / 1024


def read_mean_batch(metrics: str) -> float:
    count, total = (
        float(re.search(rf"^rightly_batch_images_{name} (\S+)", metrics, re.M).group(1))
        for name in ("count", "sum")
    )
    return total / count


def draw_noise(size: int) -> list[bytes]:
    draws = np.random.default_rng(0)
    pictures = []
    for _ in range(64):
        small = Image.fromarray(draws.integers(0, 256, (32, 32, 3), np.uint8))
        file = io.BytesIO()
        small.resize((size, size)).save(file, "JPEG")
        pictures.append(file.getvalue())
    return pictures


def read_pictures(folder: Path) -> list[bytes]:
    pictures = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    if not pictures:
        sys.exit(f"{folder} has no files")
    return pictures


if __name__ == "__main__":
    main()
