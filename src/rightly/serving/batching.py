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

from rightly.deployment.outputs import Verdicts
from rightly.serving.limits import Limits, RefusedRequest, busy

Picture = UInt8[np.ndarray, "_ _ 3"]
Row = tuple[Verdicts, int]  # what was said about a batch, and which of its images is meant


@dataclass(frozen=True, eq=False)
class _Waiting:
    image: Picture
    since: float = field(default_factory=time.monotonic)
    answer: "Future[Row]" = field(default_factory=Future)


class Batcher:
    """Runs up to `limits.batch` images at once and waits at most `limits.wait_s` for company."""

    def __init__(
        self,
        predict: Callable[[np.ndarray], Verdicts],
        limits: Limits,
        count: Callable[[int, float], object] = lambda images, seconds: None,
    ) -> None:
        self._predict, self._limits, self._count = predict, limits, count
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._running_since: float | None = None
        # A daemon, because a model that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, images: Sequence[Picture]) -> "list[Future[Row]]":
        """An answer to come for each image; one that is cancelled before its turn is not run."""
        entered = [_Waiting(image) for image in images]
        with self._changed:
            if len(self._waiting) + len(entered) > self._limits.queue:
                self._forget_cancelled()
            if self._stopping:
                raise RefusedRequest(503, "stopping", "the server is stopping")
            if len(self._waiting) + len(entered) > self._limits.queue:
                raise busy(f"{len(self._waiting)} images are waiting already")
            self._waiting.extend(entered)
            self._changed.notify()
        return [each.answer for each in entered]

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
    def works(self) -> bool:
        """Whether the thread lives and is not stuck in a batch."""
        since = self._running_since
        stuck = since is not None and time.monotonic() - since > self._limits.timeout_s
        return self._thread.is_alive() and not stuck

    def _forget_cancelled(self) -> None:
        self._waiting = deque(each for each in self._waiting if not each.answer.cancelled())

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            for _, alike in groupby(sorted(batch, key=_shape), key=_shape):
                self._run(list(alike))

    def _next(self) -> list[_Waiting] | None:
        """What to run now, without what was given up; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._stopping:
                    return None
                self._changed.wait()
            until = self._waiting[0].since + self._limits.wait_s
            while len(self._waiting) < self._limits.batch and not self._stopping:
                if not self._changed.wait(max(until - time.monotonic(), 0)):
                    break
            count = min(self._limits.batch, len(self._waiting))
            taken = [self._waiting.popleft() for _ in range(count)]
        return [each for each in taken if each.answer.set_running_or_notify_cancel()]

    def _run(self, batch: list[_Waiting]) -> None:
        started = self._running_since = time.monotonic()
        try:
            verdicts = self._predict(np.stack([each.image for each in batch]))
            if len(verdicts.classes) != len(batch):
                raise ValueError(f"{len(batch)} images got {len(verdicts.classes)} verdicts")
        except Exception as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
            else:
                for each in batch:  # so that one image that fails does not fail the others
                    self._run([each])
            return
        finally:
            self._running_since = None
        self._count(len(batch), time.monotonic() - started)
        for i, each in enumerate(batch):
            each.answer.set_result((verdicts, i))


def _shape(waiting: _Waiting) -> tuple[int, ...]:
    return waiting.image.shape
