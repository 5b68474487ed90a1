"""Decoding: threads turn pictures into batches a little ahead of the model."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import torch
from torch import Tensor

from rightly.classifiers import Preprocessing
from rightly.datasets import ImageDataset, UnreadableImage
from rightly.datasets.decoding import stored_mode

AHEAD = 3  # batches decoded before the model asks for them
STEP = 8  # pictures a thread takes at a time; handing out each alone costs as much as small ones


@dataclass
class Report:
    """What happened on the way, for the user to be told."""

    skipped: list[tuple[str, str]] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Batch:
    """Decoded images of one shard, in order; those that could not be decoded are listed."""

    rows: range
    kept: list[int]
    pixels: Tensor | None
    skipped: list[tuple[str, str]]


def decoded(
    images: ImageDataset,
    preprocessing: Preprocessing,
    batches: Iterable[tuple[int, range]],
    unreadable: str,
    workers: int | None,
    report: Report,
    pinned: bool = False,
) -> Iterator[tuple[int, Batch]]:
    """Batches, decoded by threads a little ahead of whoever takes them."""
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, "rightly-decode")
    try:
        waiting: deque[tuple[int, _Decoding]] = deque()
        for k, rows in batches:
            waiting.append((k, _Decoding(images, preprocessing, rows, pool, pinned)))
            if len(waiting) > AHEAD:
                k, oldest = waiting.popleft()
                yield k, oldest.batch(unreadable, report)
        while waiting:
            k, oldest = waiting.popleft()
            yield k, oldest.batch(unreadable, report)
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Picture:
    """How one picture went: its shape, and the mode it was stored in if not RGB; or the error."""

    shape: tuple[int, ...] = ()
    mode: str | None = None
    error: UnreadableImage | None = None


class _Decoding:
    """A batch in the making: threads write pictures into their places in one array.

    The array is channels last, as pictures are, and pinned where a GPU waits for it. It is made
    when the first picture tells its size.
    """

    def __init__(
        self,
        images: ImageDataset,
        preprocessing: Preprocessing,
        rows: range,
        pool: ThreadPoolExecutor,
        pinned: bool,
    ) -> None:
        self.images, self.preprocessing, self.rows = images, preprocessing, rows
        self.pinned, self.lock = pinned, Lock()
        self.pixels: Tensor | None = None  # (n, h, w, 3)
        steps = (rows[i : i + STEP] for i in range(0, len(rows), STEP))
        self.parts = [pool.submit(self._decode, step) for step in steps]

    def _decode(self, rows: range) -> list[_Picture]:
        return [self._decode_one(i) for i in rows]

    def _decode_one(self, i: int) -> _Picture:
        try:
            picture = self.images.read(i)
        except UnreadableImage as error:
            return _Picture(error=error)
        pixels = self.preprocessing.pixels(picture)
        with self.lock:
            if self.pixels is None:
                shape = (len(self.rows), *pixels.shape)
                self.pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=self.pinned)
        if pixels.shape == self.pixels.shape[1:]:
            # By NumPy: torch would call up all its threads for each picture.
            self.pixels.numpy()[i - self.rows.start] = pixels
        return _Picture(pixels.shape, stored_mode(picture))

    def batch(self, unreadable: str, report: Report) -> Batch:
        """The batch when all its pictures are there."""
        pictures = [picture for part in self.parts for picture in part.result()]
        kept: list[int] = []
        skipped: list[tuple[str, str]] = []
        shape: tuple[int, ...] = ()  # of the first, whichever a thread was done with first
        for i, picture in zip(self.rows, pictures, strict=True):
            if picture.error is not None:
                if unreadable == "stop":
                    raise ValueError(
                        f"{picture.error}; with unreadable='skip' such images are left out and "
                        "listed"
                    ) from picture.error
                skipped.append((picture.error.name, picture.error.reason))
                continue
            shape = shape or picture.shape
            if picture.shape != shape:
                raise ValueError(
                    f"images must have one size to form a batch, but {self.images.names[i]} is "
                    f"{picture.shape[:2]} and others are {shape[:2]}: "
                    "give the model's input size in preprocessing"
                )
            if picture.mode is not None:
                report.converted[picture.mode] += 1
            kept.append(i)
        report.skipped += skipped
        if not kept or self.pixels is None:
            return Batch(self.rows, [], None, skipped)
        pixels = self.pixels
        if skipped:
            pixels = pixels[[i - self.rows.start for i in kept]]
        return Batch(self.rows, kept, pixels.permute(0, 3, 1, 2), skipped)
