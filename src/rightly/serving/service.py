"""The way of a request from its body to its answer."""

import asyncio
import os
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from fastapi import Request

from rightly.deployment.runtime import Deployed
from rightly.serving.batching import Batcher, Picture
from rightly.serving.image_uploads import decode
from rightly.serving.limits import Limits, RefusedRequest
from rightly.serving.prometheus import Counters
from rightly.serving.schemas import Answer, prediction, summary
from rightly.serving.uploads import Intake, Upload, read_uploads

DECODERS = min(4, os.cpu_count() or 1)  # each may hold a picture of `limits.pixels` in memory
Result = TypeVar("Result")


class ClientGone(Exception):  # noqa: N818 (named for what it tells)
    """Nobody waits for the answer any more."""


class Service:
    """A model with everything that stands between it and a request."""

    def __init__(self, model: Deployed, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.counters = Counters()
        self.batcher = Batcher(model.predict, limits, self.counters.count_batch)
        self.counters.watch_queue(lambda: self.batcher.waiting)
        self._intake = Intake(limits)
        self._decoders = ThreadPoolExecutor(DECODERS, thread_name_prefix="decoding")

    def start(self) -> None:
        """Begins to work; a model that cannot run fails here and not at the first request."""
        if self.model.preprocessing.size is not None:
            self.model.predict(np.zeros((1, *self.model.preprocessing.size, 3), np.uint8))
        self.batcher.start()

    def stop(self) -> None:
        self.batcher.stop()
        self._decoders.shutdown(cancel_futures=True)

    async def answer(self, request: Request) -> Answer:
        """What the model says about the pictures of a request, within the time for it."""
        try:
            async with asyncio.timeout(self.limits.timeout_s):
                with self._intake.room() as take:
                    uploads = await read_uploads(request, self.limits, take)
                    pictures = await _unless_gone(request, self._decode(uploads))
                return await _unless_gone(request, self._judge(uploads, pictures))
        except TimeoutError as error:
            raise RefusedRequest(
                408,
                "timeout",
                f"the request took longer than {self.limits.timeout_s:g} seconds: send fewer "
                "images, or try again when the server is less busy",
                {"Connection": "close"},
            ) from error

    async def _decode(self, uploads: Sequence[Upload]) -> list[Picture]:
        loop = asyncio.get_running_loop()
        jobs = [
            loop.run_in_executor(
                self._decoders, decode, each, self.model.preprocessing, self.limits
            )
            for each in uploads
        ]
        return await _all_or_first_refusal(jobs)

    async def _judge(self, uploads: Sequence[Upload], pictures: Sequence[Picture]) -> Answer:
        waiting = [asyncio.wrap_future(each) for each in self.batcher.submit(pictures)]
        rows = await _all_or_first_refusal(waiting)
        made = [
            prediction(row, upload.name, self.model)
            for row, upload in zip(rows, uploads, strict=True)
        ]
        for each in made:
            self.counters.count_prediction(each)
        return Answer(predictions=made, model=summary(self.model))


async def _all_or_first_refusal(jobs: Sequence["asyncio.Future[Result]"]) -> list[Result]:
    """All results, or the exception of the first job that has one, in the order of the jobs."""
    done = await asyncio.gather(*jobs, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return [each.result() for each in jobs]


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of some work, which ends early if the client hangs up."""
    job = asyncio.ensure_future(work)
    hung_up = asyncio.ensure_future(_hang_up(request))
    try:
        await asyncio.wait({job, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise ClientGone
        return job.result()
    finally:
        job.cancel()
        hung_up.cancel()
        await asyncio.gather(job, hung_up, return_exceptions=True)


async def _hang_up(request: Request) -> None:
    """Ends when the client does; the whole body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
