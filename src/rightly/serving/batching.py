"""Dynamic batches: images that wait at the same time are run together, in one thread."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from jaxtyping import UInt8

from rightly.deployment.outputs import Outputs
from rightly.serving.limits import Limits, RefusedRequest, refuse_busy

Pixels = UInt8[np.ndarray, "_ _ 3"]


@dataclass(frozen=True, eq=False)
class _Job:
    """An image that waits for its turn, and the outputs of one row to come."""

    image: Pixels
    since: float = field(default_factory=time.monotonic)
    outputs: "Future[Outputs]" = field(default_factory=Future)


class Batcher:
    """Run up to `limits.max_batch` images at once, after at most `limits.wait_s`."""

    def __init__(
        self,
        predict: Callable[[np.ndarray], Outputs],
        limits: Limits,
        record_batch: Callable[[int, float], object] = lambda images, seconds: None,
    ) -> None:
        self._predict, self._limits, self._record_batch = predict, limits, record_batch
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._running_since: float | None = None
        # A daemon, because a model that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, images: Sequence[Pixels]) -> "list[Future[Outputs]]":
        """Outputs to come for each image; one that is cancelled before its turn is not run."""
        jobs = [_Job(image) for image in images]
        with self._changed:
            if len(self._waiting) + len(jobs) > self._limits.queue:
                self._drop_cancelled()
            if self._stopping:
                raise RefusedRequest(503, "stopping", "the server is stopping")
            if len(self._waiting) + len(jobs) > self._limits.queue:
                refuse_busy(f"{len(self._waiting)} images are waiting already")
            self._waiting.extend(jobs)
            self._changed.notify()
        return [job.outputs for job in jobs]

    def stop(self) -> None:
        """Runs what waits, then ends."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(self._limits.timeout_s)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_healthy(self) -> bool:
        """Whether the thread lives and is not stuck in a batch."""
        since = self._running_since
        stuck = since is not None and time.monotonic() - since > self._limits.timeout_s
        return self._thread.is_alive() and not stuck

    def _drop_cancelled(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.outputs.cancelled())

    def _work(self) -> None:
        while (batch := self._take_batch()) is not None:
            for _, jobs in groupby(sorted(batch, key=_get_shape), key=_get_shape):
                self._run(list(jobs))

    def _take_batch(self) -> list[_Job] | None:
        """What to run now, without what was given up; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._stopping:
                    return None
                self._changed.wait()
            until = self._waiting[0].since + self._limits.wait_s
            while len(self._waiting) < self._limits.max_batch and not self._stopping:
                if not self._changed.wait(max(until - time.monotonic(), 0)):
                    break
            count = min(self._limits.max_batch, len(self._waiting))
            taken = [self._waiting.popleft() for _ in range(count)]
        return [job for job in taken if job.outputs.set_running_or_notify_cancel()]

    def _run(self, batch: list[_Job]) -> None:
        started = self._running_since = time.monotonic()
        try:
            outputs = self._predict(np.stack([job.image for job in batch]))
            if len(outputs) != len(batch):
                raise ValueError(f"{len(batch)} images got outputs for {len(outputs)}")
        except Exception as error:
            if len(batch) == 1:
                batch[0].outputs.set_exception(error)
            else:
                for job in batch:  # so that one image that fails does not fail the others
                    self._run([job])
            return
        finally:
            self._running_since = None
        self._record_batch(len(batch), time.monotonic() - started)
        for job, row in zip(batch, outputs.rows(), strict=True):
            job.outputs.set_result(row)


def _get_shape(job: _Job) -> tuple[int, ...]:
    return job.image.shape
