"""The way of a request from its body to its answer."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from PIL import Image

from rightly.deployment.metadata import describe_guarantees, void_reason
from rightly.deployment.outputs import Outputs, concatenate, describe_row, view_agreement
from rightly.deployment.runtime import ExportedModel
from rightly.monitoring.drift import DriftWatch, Reference
from rightly.monitoring.logs import LogWriter
from rightly.serving.answers import make_prediction, summarise_model
from rightly.serving.batching import Batcher, Pixels
from rightly.serving.image_uploads import decode_upload
from rightly.serving.limits import Limits, RefusedRequest
from rightly.serving.prometheus import ServerMetrics
from rightly.serving.schemas import Answer
from rightly.serving.stream_adapter import StreamAdapter
from rightly.serving.uploads import MemoryBudget, Upload, read_uploads

DECODERS = min(4, os.cpu_count() or 1)  # each may hold an image of `limits.max_pixels` in memory
ANY_SIZE = (32, 32)  # of a picture, where the model takes every size
Result = TypeVar("Result")

log = logging.getLogger(__name__)


class ClientGone(Exception):  # noqa: N818 (named for what it tells)
    """Nobody waits for the answer any more."""


class Service:
    """A model with everything that stands between it and a request."""

    def __init__(
        self,
        model: ExportedModel,
        limits: Limits,
        adapter: StreamAdapter | None = None,
        log: LogWriter | None = None,
    ) -> None:
        self.model, self.limits, self.adapter, self.log = model, limits, adapter, log
        self.metrics = ServerMetrics()
        self.drift = _open_watch(model)
        self.batcher = Batcher(self._run_batch, limits, self.metrics.record_batch)
        if adapter is not None:
            self.metrics.watch_stream(adapter.stream)
        if self.drift is not None:
            self.metrics.watch_drift(self.drift)
        if describe_guarantees(model.metadata):
            self.metrics.watch_guarantee(self.find_void)
        self.metrics.watch_queue(lambda: self.batcher.waiting)
        self._memory = MemoryBudget(limits)
        self._decoders = ThreadPoolExecutor(DECODERS, thread_name_prefix="decoding")

    def check_model(self) -> None:
        """Makes a whole answer, so that a model that cannot give one is refused before it is asked.

        A picture goes the way of a request: decoded, run, its outputs put into JSON.
        """
        height, width = self.model.preprocessing.size or ANY_SIZE
        if height * width > self.limits.max_pixels:
            raise ValueError(
                f"max_pixels must be at least the {height} x {width} that the model "
                f"takes, got {self.limits.max_pixels}"
            )
        file = BytesIO()
        Image.new("RGB", (width, height), "grey").save(file, "PNG")
        upload = Upload(1, "grey.png", file)
        try:
            pixels = decode_upload(upload, self.model.preprocessing, self.limits)
            rows = list(self.model.predict(pixels[None]).rows())
            self._make_answer([upload], rows).model_dump_json(by_alias=True)
        except RefusedRequest as error:
            raise ValueError(f"the model cannot answer: {error.message}") from error
        except Exception as error:  # whatever runtimes raise at a graph that does not fit its input
            raise ValueError(f"the model cannot answer: {error}") from error

    def start(self) -> None:
        self.batcher.start()

    def stop(self) -> None:
        self.batcher.stop()
        self._decoders.shutdown(cancel_futures=True)
        if self.adapter is not None:
            self.adapter.save()
        if self.log is not None:
            self.log.close()

    async def answer(self, request: Request) -> Answer:
        """Predictions for the images of a request, within the time for it."""
        try:
            async with asyncio.timeout(self.limits.timeout_s):
                with self._memory.reserve() as reserve:
                    uploads = await read_uploads(request, self.limits, reserve)
                    images = await _run_unless_gone(request, self._decode(uploads))
                return await _run_unless_gone(request, self._predict(uploads, images))
        except TimeoutError as error:
            raise RefusedRequest(
                408,
                "timeout",
                f"the request took longer than {self.limits.timeout_s:g} seconds: send fewer "
                "images, or try again when the server is less busy",
                {"Connection": "close"},
            ) from error

    async def _decode(self, uploads: Sequence[Upload]) -> list[Pixels]:
        loop = asyncio.get_running_loop()
        jobs = [
            loop.run_in_executor(
                self._decoders, decode_upload, upload, self.model.preprocessing, self.limits
            )
            for upload in uploads
        ]
        return await _gather_or_refuse(jobs)

    async def _predict(self, uploads: Sequence[Upload], images: Sequence[Pixels]) -> Answer:
        jobs = [asyncio.wrap_future(future) for future in self.batcher.submit(images)]
        rows = await _gather_or_refuse(jobs)
        now = round(time.time(), 3)
        if self.drift is not None:
            self._watch_drift(self.drift, rows, now)
        answer = self._make_answer(uploads, rows)
        if self.log is not None:
            void = self.find_void()
            self.log.write(({"void": void, **describe_row(row)} for row in rows), now)
        for prediction in answer.predictions:
            self.metrics.record_prediction(prediction)
        return answer

    def _run_batch(self, images: np.ndarray) -> Outputs:
        return (self.adapter or self.model).predict(images)

    def _watch_drift(self, drift: DriftWatch, rows: Sequence[Outputs], now: float) -> None:
        """Test what is answered, in the order and at the times of the log."""
        outputs = concatenate(rows)
        assert outputs.shift_score is not None
        agreement = np.array(view_agreement(outputs), float) if drift.has_agreement else None
        times = np.full(len(outputs), now)
        for alarm in drift.observe(outputs.classes, outputs.shift_score, agreement, times):
            log.warning("drift: %s alarm after %d images", alarm.name, alarm.at)
        drift.start_finding_limits()

    def find_void(self) -> str | None:
        """Why no guarantee holds for what is served now; None where no reason is known."""
        alarm = None if self.drift is None else self.drift.alarm
        return void_reason(self.model.metadata, adapts=self.adapter is not None, alarm=alarm)

    def _make_answer(self, uploads: Sequence[Upload], rows: Sequence[Outputs]) -> Answer:
        predictions = [
            make_prediction(row, upload.name, self.model, self.adapter is not None)
            for row, upload in zip(rows, uploads, strict=True)
        ]
        return Answer(predictions=predictions, model=summarise_model(self.model, self.find_void()))


def _open_watch(model: ExportedModel) -> DriftWatch | None:
    """None where the file does not say what images without drift look like."""
    metadata = model.metadata
    if any(metadata.get(name) is None for name in ("drift", "shift_adaptation")):
        return None
    views = metadata["views"]
    # A budget spares views of some images: then agreement means another thing.
    has_all_views = bool(views) and metadata["passes"] == 1 + len(views)
    return DriftWatch(Reference.of(metadata["drift"]), has_agreement=has_all_views)


async def _gather_or_refuse(jobs: Sequence["asyncio.Future[Result]"]) -> list[Result]:
    """All results, or the exception of the first job that has one, in the order of the jobs."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [job.result() for job in jobs]


async def _run_unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work, which ends early if the client hangs up."""
    job = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({job, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise ClientGone
        return job.result()
    finally:
        job.cancel()
        disconnect.cancel()
        await asyncio.gather(job, disconnect, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    """Ends when the client does; the whole body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
