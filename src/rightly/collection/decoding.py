"""Decoding: threads turn images into batches ahead of the model."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import torch
from torch import Tensor

from rightly.classifiers.preprocessing import Preprocessing
from rightly.datasets import ImageDataset, UnreadableImage
from rightly.datasets.decoding import stored_mode
from rightly.predictions.rows import hash_image

AHEAD = 3  # batches decoded before the model asks for them
STEP = 8  # images a thread takes at a time: handing out each alone costs as much as decoding


@dataclass
class CollectionLog:
    """Images that were skipped, with reasons, and how many were converted from which mode."""

    skipped: list[tuple[str, str]] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Batch:
    """Decoded images of one shard, in order; those that could not be decoded are listed."""

    rows: range
    kept: list[int]
    pixels: Tensor | None
    skipped: list[tuple[str, str]]
    hashes: list[int] = field(default_factory=list)  # of those kept, as they were decoded


def decode_batches(
    images: ImageDataset,
    preprocessing: Preprocessing,
    batches: Iterable[tuple[int, range]],
    unreadable: str,
    workers: int | None,
    log: CollectionLog,
    pinned: bool = False,
) -> Iterator[tuple[int, Batch]]:
    """Batches, decoded by threads while the consumer works on earlier ones."""
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, "rightly-decode")
    try:
        pending: deque[tuple[int, _PendingBatch]] = deque()
        for k, rows in batches:
            pending.append((k, _PendingBatch(images, preprocessing, rows, pool, pinned)))
            if len(pending) > AHEAD:
                k, oldest = pending.popleft()
                yield k, oldest.finish(unreadable, log)
        while pending:
            k, oldest = pending.popleft()
            yield k, oldest.finish(unreadable, log)
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _DecodedImage:
    """Shape and hash of one image and the mode it was stored in if not RGB; or the error."""

    shape: tuple[int, ...] = ()
    hash: int = 0
    mode: str | None = None
    error: UnreadableImage | None = None


class _PendingBatch:
    """A batch being decoded: threads write images into their places in one array.

    The array is channels last, as images are, and pinned for copies to a GPU. It is allocated
    when the first image gives its size.
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

    def _decode(self, rows: range) -> list[_DecodedImage]:
        return [self._decode_one(i) for i in rows]

    def _decode_one(self, i: int) -> _DecodedImage:
        try:
            image = self.images.read(i)
        except UnreadableImage as error:
            return _DecodedImage(error=error)
        pixels = self.preprocessing.pixels(image)
        with self.lock:
            if self.pixels is None:
                shape = (len(self.rows), *pixels.shape)
                self.pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=self.pinned)
        if pixels.shape == self.pixels.shape[1:]:
            # By NumPy: torch would call up all its threads for each image.
            self.pixels.numpy()[i - self.rows.start] = pixels
        return _DecodedImage(pixels.shape, hash_image(image), stored_mode(image))

    def finish(self, unreadable: str, log: CollectionLog) -> Batch:
        """Waits for all images of the batch."""
        decoded = [image for part in self.parts for image in part.result()]
        kept: list[int] = []
        hashes: list[int] = []
        skipped: list[tuple[str, str]] = []
        shape: tuple[int, ...] = ()  # of the first, whichever a thread was done with first
        for i, image in zip(self.rows, decoded, strict=True):
            if image.error is not None:
                if unreadable == "stop":
                    raise ValueError(
                        f"{image.error}; with unreadable='skip' such images are left out and listed"
                    ) from image.error
                skipped.append((image.error.name, image.error.reason))
                continue
            shape = shape or image.shape
            if image.shape != shape:
                raise ValueError(
                    f"images must have one size to form a batch, but {self.images.names[i]} is "
                    f"{image.shape[:2]} and others are {shape[:2]}: "
                    "give the model's input size in preprocessing"
                )
            if image.mode is not None:
                log.converted[image.mode] += 1
            kept.append(i)
            hashes.append(image.hash)
        log.skipped += skipped
        if not kept or self.pixels is None:
            return Batch(self.rows, [], None, skipped)
        pixels = self.pixels
        if skipped:
            pixels = pixels[[i - self.rows.start for i in kept]]
        return Batch(self.rows, kept, pixels.permute(0, 3, 1, 2), skipped, hashes)
